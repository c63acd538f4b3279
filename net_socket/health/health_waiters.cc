#include "net_socket/health/health_waiters.h"

#include <algorithm>
#include <utility>

namespace tcpx {

void HealthWaiters::AwaitInLoop(Waiter* waiter) {
  const HealthState state = socket_->state();
  if (state == HealthState::kUp) return waiter->HealthUpInLoop();
  waiters_.push_back(waiter);
  if (state == HealthState::kLost || dialler_ != nullptr) return;
  dialler_ = waiter;
  waiter->DialHealthInLoop();
}

void HealthWaiters::GiveUpInLoop(Waiter* waiter) {
  waiters_.erase(std::remove(waiters_.begin(), waiters_.end(), waiter), waiters_.end());
  if (dialler_ != waiter) return;
  dialler_ = nullptr;
  DialInLoop();
}

void HealthWaiters::NotifyInLoop() {
  dialler_ = nullptr;
  for (Waiter* waiter : std::exchange(waiters_, {})) waiter->HealthUpInLoop();
}

void HealthWaiters::DialInLoop() {
  if (waiters_.empty() || dialler_ != nullptr) return;
  dialler_ = waiters_.front();
  dialler_->DialHealthInLoop();
}

}  // namespace tcpx
