#include "net_socket/send/lane_rates.h"

namespace tcpx {

LaneRates::LaneRates(int lanes, bool piloted)
    : count_(lanes),
      piloted_(piloted && lanes > 1),
      lanes_(new Lane[lanes]),
      pilot_(lanes),
      acked_(static_cast<size_t>(lanes)) {}

double LaneRates::Share(int lane) const {
  int64_t sum = 0;
  int carrying = 0;
  bool known = true;
  for (int i = 0; i < count_; ++i) {
    if (!Carries(i)) continue;
    const int64_t rate = Get(i);
    known &= rate != 0;
    sum += rate;
    ++carrying;
  }
  if (!known || carrying == 0) return 1.0 / (carrying > 0 ? carrying : 1);
  return static_cast<double>(Get(lane)) / static_cast<double>(sum);
}

void LaneRates::Looked(int lane, int64_t now_ns, uint64_t acked) {
  lanes_[lane].acked.store(acked, std::memory_order_relaxed);
  if (piloted_ && now_ns >= next_step_ns_.load(std::memory_order_relaxed)) Step(now_ns);
}

void LaneRates::Step(int64_t now_ns) {
  if (!mutex_.try_lock()) return;
  MutexLock lock(mutex_, std::adopt_lock);
  if (now_ns < next_step_ns_.load(std::memory_order_relaxed)) return;
  next_step_ns_.store(now_ns + LanePilot::kStepNs, std::memory_order_relaxed);
  for (int i = 0; i < count_; ++i) acked_[static_cast<size_t>(i)] = lanes_[i].acked.load(std::memory_order_relaxed);
  if (!pilot_.Step(now_ns, acked_)) return;
  for (int i = 0; i < count_; ++i) lanes_[i].carries.store(pilot_.carries(i), std::memory_order_relaxed);
}

}  // namespace tcpx
