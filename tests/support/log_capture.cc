#include "tests/support/log_capture.h"

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

__attribute__((format(printf, 5, 6))) void Capture(ncclDebugLogLevel level, unsigned long, const char*, int,
                                                   const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  std::lock_guard<std::mutex> lock(mutex);
  Lines().emplace_back(level, text);
}

}  // namespace

ncclDebugLogger_t CapturingLogger() { return &Capture; }

void ClearCapturedLog() {
  std::lock_guard<std::mutex> lock(mutex);
  Lines().clear();
}

std::vector<std::string> CapturedLines(ncclDebugLogLevel level) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string> found;
  for (const Line& line : Lines()) {
    if (line.first == level) found.push_back(line.second);
  }
  return found;
}

std::string CapturedLog() {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  for (const Line& line : Lines()) text += line.second + "\n";
  return text;
}

}  // namespace tcpx
