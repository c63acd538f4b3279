#include "common/log.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/escape.h"

namespace tcpx {
namespace {

// Mutable globals by design (nothing else reaches every function): where lines go, and which levels are on.
std::atomic<LogSink> log_sink{nullptr};
constexpr int kUnread = -1;
std::atomic<int> highest_level{kUnread};

// NCCL's logger may show INFO for reasons unknown here (ncclCommInitRankConfig, a file), so a sink gets it always.
int ReadHighestLevel(LogSink sink) {
  const absl::string_view wanted = absl::NullSafeStringView(getenv("NCCL_DEBUG"));
  LogLevel level = sink != nullptr || absl::EqualsIgnoreCase(wanted, "INFO") ? LogLevel::kInfo : LogLevel::kWarn;
  if (absl::EqualsIgnoreCase(wanted, "TRACE")) level = LogLevel::kTrace;
  highest_level.store(static_cast<int>(level), std::memory_order_relaxed);
  return static_cast<int>(level);
}

// One write, so that lines of several processes do not mix.
void WriteToStderr(LogLevel level, const char* file, int line, const std::string& text) {
  const char* const name = level == LogLevel::kWarn ? "WARN" : level == LogLevel::kInfo ? "INFO" : "TRACE";
  std::string out = absl::StrCat("[", getpid(), "] ", name, " ");
  if (level == LogLevel::kWarn) absl::StrAppend(&out, file, ":", line, " ");
  absl::StrAppend(&out, text, "\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, out.data(), out.size());
}

}  // namespace

void SetLogSink(LogSink sink) {
  log_sink.store(sink, std::memory_order_release);
  ReadHighestLevel(sink);
}

bool LogEnabled(LogLevel level) {
  int highest = highest_level.load(std::memory_order_relaxed);
  if (highest == kUnread) highest = ReadHighestLevel(log_sink.load(std::memory_order_acquire));
  return static_cast<int>(level) <= highest;
}

void LogLineTo(LogSink sink, LogLevel level, uint64_t subsystem, const char* file, int line, absl::string_view text) {
  const std::string prefixed = "NET/tcpx: " + OneLine(text);
  if (sink == nullptr) sink = log_sink.load(std::memory_order_acquire);
  if (sink == nullptr) return WriteToStderr(level, file, line, prefixed);
  sink(level, subsystem, file, line, prefixed.c_str());
}

std::string UnsaidLines(uint64_t count) {
  return count == 0 ? "" : absl::StrCat(" (and ", count, " more such lines before)");
}

}  // namespace tcpx
