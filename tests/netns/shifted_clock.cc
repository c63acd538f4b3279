#include "tests/netns/shifted_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace tcpx {
namespace {

std::atomic<int64_t> g_shift_seconds{0};

}  // namespace

void ShiftClock(int64_t seconds) { g_shift_seconds.fetch_add(seconds); }

}  // namespace tcpx

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t id, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, id, time));
  if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE) time->tv_sec += tcpx::g_shift_seconds.load();
  return result;
}
