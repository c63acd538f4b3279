#include "net_socket/send/idle_lanes.h"

namespace tcpx {

void IdleLanes::WakeOne() {
  for (int i = 0; i < count_; ++i) {
    if (!Take(i)) continue;
    ProgressPool::Kick(lanes_[i].lane);
    return;
  }
}

void IdleLanes::WakeNext() {
  if (!AnyIdle()) return;
  MutexLock lock(mutex_);
  if (!closed_) WakeOne();
}

void IdleLanes::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

bool IdleLanes::AnyIdle() const {
  for (int i = 0; i < count_; ++i) {
    if (lanes_[i].idle.load(std::memory_order_seq_cst)) return true;
  }
  return false;
}

}  // namespace tcpx
