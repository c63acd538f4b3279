// plugin_log.h: the logger that a plugin gets from net_bench.
//
// Purpose: WARN lines go to stderr at once; INFO lines are kept, because they say how the plugin has set itself up.
// Threads: any; NCCL's logger has no argument for the caller's own data, so there is one log per process.
// Errors:  none.
#pragma once

#include <string>
#include <vector>

#include "nccl/net_types.h"

namespace tcpx {
namespace bench {

// `prefix` opens each line on stderr ("rank 0"). `verbose` sends INFO lines there too.
void ConfigurePluginLog(const std::string& prefix, bool verbose);

// Hand this to init.
void PluginLogger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 5, 6)));

// A callback that takes every event and remembers none, as NCCL's own without a profiler plugin.
ncclResult_t IgnoreProfilerEvent(void** handle, int type, void* parent, int64_t plugin_id, void* data);

// A callback that wants every event and counts it.
ncclResult_t CountProfilerEvent(void** handle, int type, void* parent, int64_t plugin_id, void* data);
// "12 events started, 3 updates, 12 stops".
std::string CountedProfilerEvents();

// The INFO lines so far that speak of engine, mode, lanes or threads; of those that differ in numbers only, the
// first.
std::vector<std::string> PluginConfigurationLines();
// The last WARN line, or empty.
std::string LastPluginWarning();

}  // namespace bench
}  // namespace tcpx
