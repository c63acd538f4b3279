#include "net_socket/gpu/gpu_patience.h"

#include <unistd.h>

#include <algorithm>

#include "common/clock.h"

namespace tcpx {
namespace {

// From one look at a stream to the next, of a thread that waits for it. A guess.
constexpr unsigned kNapUs = 50;
// The patience with other streams of a GPU that is stuck: far more than the copies of all slots take. A guess.
constexpr int64_t kOthersNs = kSecond;

}  // namespace

bool GpuPatience::Await(std::atomic<bool>* stuck, absl::FunctionRef<bool()> over) {
  const int64_t until_ns = MonotonicNanos() + (stuck_streams_.load() == 0 ? ns_ : std::min(ns_, kOthersNs));
  while (!over()) {
    if (stuck->load()) return false;
    if (MonotonicNanos() < until_ns) {
      usleep(kNapUs);
    } else if (!stuck->exchange(true)) {
      ++stuck_streams_;
    }
  }
  if (stuck->exchange(false)) --stuck_streams_;
  return true;
}

}  // namespace tcpx
