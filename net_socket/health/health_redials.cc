#include "net_socket/health/health_redials.h"

#include <algorithm>
#include <utility>

namespace tcpx {

void HealthWaiters::AwaitInLoop(Waiter* waiter) {
  const HealthState state = socket_->state();
  if (state == HealthState::kUp) return waiter->HealthUpInLoop();
  waiters_.push_back(waiter);
  if (state != HealthState::kLost) DialInLoop();
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

void HealthRedials::Join(const ConnectionId& id, std::shared_ptr<HealthRedialler> redialler) {
  if (redialler != nullptr) all_[id] = std::move(redialler);
}

void HealthRedials::Leave(const ConnectionId& id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  last_to_leave_ = std::move(found->second);
  all_.erase(found);
}

bool HealthRedials::DialInLoop(std::shared_ptr<HealthPeer> health) {
  if (dials_ == nullptr) dials_ = all_.empty() ? last_to_leave_ : all_.begin()->second;
  if (dials_ == nullptr) return false;
  dials_->DialInLoop(std::move(health));
  return true;
}

void HealthRedials::HaltInLoop() {
  const std::shared_ptr<HealthRedialler> halted = std::exchange(dials_, nullptr);
  if (halted != nullptr) halted->HaltInLoop();
}

std::vector<ConnectionId> HealthRedials::Refuse(const HealthRedialler* redialler) {
  std::vector<ConnectionId> refused;
  for (const auto& [id, one] : all_) {
    if (one.get() == redialler) refused.push_back(id);
  }
  for (const ConnectionId& id : refused) all_.erase(id);
  if (last_to_leave_.get() == redialler) last_to_leave_ = nullptr;
  return refused;
}

}  // namespace tcpx
