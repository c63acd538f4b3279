// kept_lines.h: what the plugin's functions say in their log, kept for the doctor.
//
// Purpose: a WARN is what keeps it from working, in the words that a job's log will have; an INFO is what was decided.
//          The doctor asks the plugin's functions twice, as they are linked into it and in the library that NCCL would
//          load.
// Threads: any.
// Lifetime: one log per process: NCCL's logger is a plain function.
#pragma once

#include <string>
#include <vector>

#include "nccl/net_types.h"

namespace tcpx {
namespace doctor {

struct KeptLines {
  std::vector<std::string> warnings;  // each once
  std::vector<std::string> infos;
};

// From now on the log of what is linked in is kept, and not written.
void KeepLog();
// Hand this to a plugin's init.
void KeepPluginLine(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 5, 6)));

// What came since the last call, without the prefix "NET/tcpx: ".
KeptLines TakeLines();

}  // namespace doctor
}  // namespace tcpx
