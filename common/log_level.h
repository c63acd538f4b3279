// log_level.h: the two types a log sink is made of; shared by common/log.h and nccl/plugin_api.h.
//
// Threads: a sink is called from any thread while the library is loaded.
// Source:  values of ncclDebugLogLevel, all NCCL releases.
#pragma once

#include <cstdint>

namespace tcpx {

// The bits of ncclDebugLogLevel that the transport uses.
enum class LogLevel : int { kWarn = 2, kInfo = 3, kTrace = 5 };

// Takes one finished line. Callable from any thread while the library is loaded. `subsystem` is a mask of NCCL's
// subsystem bits (nccl-independent callers use kLogNet and kLogInit of common/log.h).
using LogSink = void (*)(LogLevel level, uint64_t subsystem, const char* file, int line, const char* text);

}  // namespace tcpx
