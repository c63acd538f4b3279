// lane_rates.h: a connection's bulk lanes side by side: who shall take how much of what is left, and who nothing.
//
// Threads: each lane's owner sets its own and looks; any reads.
// Lifetime: outlives the lanes.
// Units:   bytes per second, bytes, nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_SEND_LANE_RATES_H_
#define TCPX_NET_SOCKET_SEND_LANE_RATES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/mutex.h"
#include "net_socket/send/lane_pilot.h"

namespace tcpx {

class LaneRates {
 public:
  // `piloted`: lanes that bring nothing are paused (lane_pilot.h); else all carry.
  explicit LaneRates(int lanes, bool piloted = false);

  void Set(int lane, int64_t bytes_per_second) { lanes_[lane].rate.store(bytes_per_second, std::memory_order_relaxed); }
  int64_t Get(int lane) const { return lanes_[lane].rate.load(std::memory_order_relaxed); }
  // 0 to 1, of the lanes that carry; equal parts while any of their rates is unknown.
  double Share(int lane) const;

  // A lane that does not is to take no chunk, and to ask again after kAskAgainNs.
  static constexpr int64_t kAskAgainNs = LanePilot::kStepNs;
  bool Carries(int lane) const { return lanes_[lane].carries.load(std::memory_order_relaxed); }
  // The lane has been looked at: so much was acknowledged so far.
  void Looked(int lane, int64_t now_ns, uint64_t acked);

 private:
  struct Lane {
    std::atomic<int64_t> rate{0};
    std::atomic<uint64_t> acked{0};
    std::atomic<bool> carries{true};
  };

  void Step(int64_t now_ns);

  const int count_;
  const bool piloted_;
  const std::unique_ptr<Lane[]> lanes_;
  std::atomic<int64_t> next_step_ns_{0};
  Mutex mutex_;
  LanePilot pilot_ TCPX_GUARDED_BY(mutex_);
  std::vector<uint64_t> acked_ TCPX_GUARDED_BY(mutex_);  // Step's, kept so that it allocates nothing
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEND_LANE_RATES_H_
