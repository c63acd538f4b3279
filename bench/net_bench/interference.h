// interference.h: how much of a sample another process had the driver's CPU.
//
// Purpose: a comparison must not be decided by another process (a compiler, a cron job) that ran during one of two
//          samples. A driver that spins never waits for its CPU, unless someone else has it.
// Threads: readings are of the calling thread and its process.
// Units:   nanoseconds.
// Errors:  where the kernel does not tell, nothing counts as lost.
// Source:  /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst): time on a CPU, time waiting for one.
#pragma once

#include <cstdint>

namespace tcpx {
namespace bench {

struct SchedulerReading {
  int64_t waiting_ns = 0;      // this thread was ready and had no CPU
  int64_t thread_cpu_ns = 0;   // of this thread
  int64_t process_cpu_ns = 0;  // of all threads
};
SchedulerReading ReadScheduler();

// Time that strangers took between two readings. 0 when the process has been running other threads of its own: then it
// is likely those that the driver waited for, and that is part of what is measured.
int64_t LostToOthersNs(const SchedulerReading& before, const SchedulerReading& after);

}  // namespace bench
}  // namespace tcpx
