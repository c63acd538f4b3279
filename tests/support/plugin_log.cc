#include "tests/support/plugin_log.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <utility>

namespace tcpx {
namespace {

using Line = std::pair<ncclDebugLogLevel, std::string>;

std::mutex mutex;

// Never destroyed: a plugin may log until the very end of the process.
std::vector<Line>& Lines() {
  static auto* lines = new std::vector<Line>;
  return *lines;
}

// As LogText returns it: tests look into it again and again.
std::string& Text() {
  static auto* text = new std::string;
  return *text;
}

}  // namespace

void RecordLog(ncclDebugLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (level == NCCL_LOG_WARN) std::fprintf(stderr, "[%d] WARN %s\n", static_cast<int>(getpid()), text);
  std::lock_guard<std::mutex> lock(mutex);
  Lines().emplace_back(level, text);
  Text().append(level == NCCL_LOG_WARN ? "WARN " : "INFO ").append(text).append("\n");
}

void ClearLog() {
  std::lock_guard<std::mutex> lock(mutex);
  Lines().clear();
  Text().clear();
}

std::vector<std::string> LogLines(ncclDebugLogLevel level) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string> found;
  for (const Line& line : Lines()) {
    if (line.first == level) found.push_back(line.second);
  }
  return found;
}

std::vector<std::string> Warnings() {
  std::vector<std::string> found;
  for (std::string& line : LogLines(NCCL_LOG_WARN)) {
    if (line.find("is in effect, and for tests only") == std::string::npos) found.push_back(std::move(line));
  }
  return found;
}

int WarningCount() { return static_cast<int>(Warnings().size()); }

std::string LogText() {
  std::lock_guard<std::mutex> lock(mutex);
  return Text();
}

bool LogHas(const std::string& part) { return CountInLog(part) > 0; }

int CountInLog(const std::string& part) {
  std::lock_guard<std::mutex> lock(mutex);
  int count = 0;
  for (size_t at = Text().find(part); at != std::string::npos; at = Text().find(part, at + 1)) ++count;
  return count;
}

}  // namespace tcpx
