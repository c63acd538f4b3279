#include "net_socket/health/health_redials.h"

#include <utility>

namespace tcpx {

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
