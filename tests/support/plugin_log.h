// plugin_log.h: an NCCL logger that keeps what the plugin says in this process.
//
// Purpose: tests look for a WARN, count them, and print everything when they fail. A WARN goes to stderr at once, too.
// Threads: any; there is one log per process, because NCCL's logger is a plain function.
#pragma once

#include <string>
#include <vector>

#include "nccl/net_types.h"

namespace tcpx {

// Pass this as the logger to Init.
void RecordLog(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 5, 6)));
void ClearLog();
// Lines of `level`, oldest first.
std::vector<std::string> LogLines(ncclDebugLogLevel level);
// At WARN, but for those that say that a parameter for tests is in effect.
std::vector<std::string> Warnings();
int WarningCount();  // of those
// All lines, each after "WARN " or "INFO ".
std::string LogText();
bool LogHas(const std::string& part);
// How often `part` appears in the log.
int CountInLog(const std::string& part);

}  // namespace tcpx
