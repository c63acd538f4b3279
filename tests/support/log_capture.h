// log_capture.h: an NCCL logger that keeps what a plugin says.
//
// Purpose: tests look for a WARN, count them, and print them when they fail.
//
// Threads: any; there is one log per process, because NCCL's logger is a plain function.
#ifndef TCPX_TESTS_SUPPORT_LOG_CAPTURE_H_
#define TCPX_TESTS_SUPPORT_LOG_CAPTURE_H_

#include <string>
#include <vector>

#include "nccl/net_types.h"

namespace tcpx {

// Pass this as the logger to Init.
ncclDebugLogger_t CapturingLogger();
void ClearCapturedLog();
// Lines of `level`, oldest first.
std::vector<std::string> CapturedLines(ncclDebugLogLevel level);
// All lines, for a failure's text.
std::string CapturedLog();

}  // namespace tcpx

#endif  // TCPX_TESTS_SUPPORT_LOG_CAPTURE_H_
