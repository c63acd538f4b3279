// event_json.h: an event as lines of the trace.
//
// Threads: any.
// Units:   microseconds with three decimals, as the format has it.
// Source:  "Trace Event Format" of the Chromium project.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock_notes.h"
#include "profiler/event.h"
#include "profiler/trace_file.h"

namespace tcpx {

// The event, and within it what a step waited for.
void AppendEvent(const Event& event, int pid, TraceFile* file);
// A row's name, or the process's (track 0).
std::string NameLine(const char* what, const std::string& name, int pid, uint32_t track);
// A moment of the whole process with numbers: {"realtime_ns", 1}.
std::string MomentLine(const char* name, int64_t at_ns, int pid, const char* key, int64_t value);
// What this process is called in other processes' measures of its clock, as of `now_ns`; or one of its own.
std::string ClockNoteLine(const ClockNote& note, int64_t now_ns, int pid);

}  // namespace tcpx
