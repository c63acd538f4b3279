#include "bench/net_bench/interference.h"

#include <time.h>

#include <algorithm>
#include <fstream>

#include "common/clock.h"

namespace tcpx {
namespace bench {
namespace {

int64_t ClockNanos(clockid_t clock) {
  timespec value = {};
  clock_gettime(clock, &value);
  return static_cast<int64_t>(value.tv_sec) * kSecond + value.tv_nsec;
}

}  // namespace

SchedulerReading ReadScheduler() {
  SchedulerReading reading;
  reading.thread_cpu_ns = ClockNanos(CLOCK_THREAD_CPUTIME_ID);
  reading.process_cpu_ns = ClockNanos(CLOCK_PROCESS_CPUTIME_ID);
  std::ifstream file("/proc/thread-self/schedstat");
  int64_t running_ns = 0;
  int64_t waiting_ns = 0;
  if (file >> running_ns >> waiting_ns) reading.waiting_ns = waiting_ns;
  return reading;
}

int64_t LostToOthersNs(const SchedulerReading& before, const SchedulerReading& after) {
  const int64_t waiting = after.waiting_ns - before.waiting_ns;
  const int64_t own = after.thread_cpu_ns - before.thread_cpu_ns;
  const int64_t own_others = (after.process_cpu_ns - before.process_cpu_ns) - own;
  const bool busy_threads = own_others > own / 50;
  return busy_threads ? 0 : std::max<int64_t>(0, waiting);
}

}  // namespace bench
}  // namespace tcpx
