#include "net_socket/plugin/transport_users.h"

#include <utility>

namespace tcpx {

TransportUse::TransportUse(TransportUsers* users) : users_(users) { ++users->users_; }

bool TransportUse::last() const { return users_ != nullptr && users_->users_ == 1; }

TransportUse TransportUse::Another() const { return users_ == nullptr ? TransportUse() : TransportUse(users_.get()); }

void TransportUse::Leave::operator()(TransportUsers* users) const {
  if (--users->users_ == 0) users->Retire();
}

absl::StatusOr<TransportUse> TransportUsers::Use(const Starter& start) {
  if (ended_) return absl::UnknownError("tcpx is being unloaded");
  if (transport_ == nullptr) {
    ForgetEnded();
    auto transport = start();
    if (!transport.ok()) return transport.status();
    transport_ = *std::move(transport);
  }
  return TransportUse(this);
}

void TransportUsers::Retire() {
  if (transport_ == nullptr || ended_) return;
  transport_->Retire();
  retired_.push_back(std::move(transport_));
}

bool TransportUsers::ForgetEnded() {
  for (auto it = retired_.begin(); it != retired_.end();) {
    it = (*it)->runtime().reactor.ended() ? retired_.erase(it) : it + 1;
  }
  return retired_.empty();
}

std::vector<std::unique_ptr<Transport>> TransportUsers::TakeRetired() {
  for (auto& transport : retired_) transport->runtime().lingering.Hurry();
  return std::exchange(retired_, {});
}

void TransportUsers::End(bool in_use) {
  if (!in_use) Retire();
  ended_ = true;
  if (transport_ != nullptr) transport_->Abandon();
  TakeRetired().clear();
}

}  // namespace tcpx
