#include "bench/netns/wire/rate_gate.h"

namespace tcpx {
namespace wire {

uint64_t RateGate::Backlog(int64_t now, uint64_t rate) const {
  if (rate == 0 || free_at_ <= now) return 0;
  return static_cast<uint64_t>(static_cast<double>(free_at_ - now) * static_cast<double>(rate) / 8e9);
}

int64_t RateGate::Pass(int64_t since, int64_t now, uint64_t bytes, uint64_t rate) {
  const int64_t begins = free_at_ > now || (free_at_ >= since && free_at_ > 0) ? free_at_ : now;
  const auto takes = rate == 0 ? 0 : static_cast<int64_t>(static_cast<double>(bytes) * 8e9 / static_cast<double>(rate));
  free_at_ = begins + takes;
  return free_at_;
}

}  // namespace wire
}  // namespace tcpx
