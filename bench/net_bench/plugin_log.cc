#include "bench/net_bench/plugin_log.h"

#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nccl/profiler_tables.h"

namespace tcpx {
namespace bench {
namespace {

constexpr size_t kLinesMax = 32;

struct Log {
  std::mutex mutex;
  std::string prefix;
  bool verbose = false;
  std::vector<std::string> lines;
  std::string warning;
};

// Never destroyed: a plugin may log until the process is gone.
Log& TheLog() {
  static Log* const log = new Log;
  return *log;
}

constexpr size_t kEventTypes = 4;

struct EventCounts {
  std::array<std::atomic<uint64_t>, kEventTypes> by_type{};
};

EventCounts& TheEvents() {
  static EventCounts* const counts = new EventCounts;
  return *counts;
}

bool TellsConfiguration(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (const char* word : {"engine", "mode", "lanes", "threads"}) {
    if (absl::StrContains(lower, word)) return true;
  }
  return false;
}

// The line without its numbers: of hundreds of connections that are set up alike one line is enough.
std::string ShapeOf(const std::string& text) {
  std::string shape;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) shape.push_back(c);
  }
  return shape;
}

void Keep(Log* log, ncclDebugLogLevel level, const std::string& text) {
  if (level == NCCL_LOG_WARN) log->warning = text;
  if (level != NCCL_LOG_INFO || !TellsConfiguration(text) || log->lines.size() == kLinesMax) return;
  const bool known = std::any_of(log->lines.begin(), log->lines.end(),
                                 [&](const std::string& line) { return ShapeOf(line) == ShapeOf(text); });
  if (!known) log->lines.push_back(text);
}

}  // namespace

void ConfigurePluginLog(const std::string& prefix, bool verbose) {
  Log& log = TheLog();
  std::lock_guard<std::mutex> lock(log.mutex);
  log.prefix = prefix;
  log.verbose = verbose;
}

void PluginLogger(ncclDebugLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level != NCCL_LOG_WARN && level != NCCL_LOG_INFO) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  Log& log = TheLog();
  std::lock_guard<std::mutex> lock(log.mutex);
  Keep(&log, level, text);
  if (level == NCCL_LOG_WARN || log.verbose) {
    fprintf(stderr, "%s %s %s\n", log.prefix.c_str(), level == NCCL_LOG_WARN ? "WARN" : "INFO", text);
  }
}

ncclResult_t IgnoreProfilerEvent(void**, int, void*, int64_t, void*) { return ncclSuccess; }

ncclResult_t CountProfilerEvent(void** handle, int type, void*, int64_t, void*) {
  if (type == ncclProfilerNetEventStart) *handle = &TheEvents();
  TheEvents().by_type[static_cast<size_t>(type) % kEventTypes].fetch_add(1, std::memory_order_relaxed);
  return ncclSuccess;
}

std::string CountedProfilerEvents() {
  const auto& counts = TheEvents().by_type;
  return absl::StrCat(counts[ncclProfilerNetEventStart].load(), " events started, ",
                      counts[ncclProfilerNetEventUpdate].load(), " updates, ", counts[ncclProfilerNetEventStop].load(),
                      " stops");
}

std::vector<std::string> PluginConfigurationLines() {
  Log& log = TheLog();
  std::lock_guard<std::mutex> lock(log.mutex);
  return log.lines;
}

std::string LastPluginWarning() {
  Log& log = TheLog();
  std::lock_guard<std::mutex> lock(log.mutex);
  return log.warning;
}

}  // namespace bench
}  // namespace tcpx
