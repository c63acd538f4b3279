#include "tools/doctor/kept_lines.h"

#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/log.h"

namespace tcpx {
namespace doctor {
namespace {

std::mutex mutex;
KeptLines kept;

void Keep(bool warns, absl::string_view text) {
  absl::ConsumePrefix(&text, "NET/tcpx: ");
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string>& lines = warns ? kept.warnings : kept.infos;
  if (std::find(lines.begin(), lines.end(), text) == lines.end()) lines.emplace_back(text);
}

void KeepOwnLine(LogLevel level, uint64_t, const char*, int, const char* text) {
  if (level != LogLevel::kTrace) Keep(level == LogLevel::kWarn, text);
}

}  // namespace

void KeepLog() { SetLogSink(KeepOwnLine); }

void KeepPluginLine(ncclDebugLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level != NCCL_LOG_WARN && level != NCCL_LOG_INFO) return;
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  Keep(level == NCCL_LOG_WARN, text);
}

KeptLines TakeLines() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(kept, KeptLines());
}

}  // namespace doctor
}  // namespace tcpx
