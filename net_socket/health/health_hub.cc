#include "net_socket/health/health_hub.h"

#include "absl/algorithm/container.h"
#include "common/random.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

// What a socket that the network swallows has sent is not acknowledged.
bool IsUp(HealthPeer& health) {
  LaneTcpInfo info;
  const bool up = health.socket().state() == HealthState::kUp && !health.socket().end().seen;
  return up && health.socket().ReadTcp(&info) &&
         (info.held_bytes == 0 || info.heard_ms() * kMillisecond < tuning::kHeardNs);
}

}  // namespace

std::shared_ptr<HealthPeer> HealthHub::MakeInLoop(uint64_t tag, bool dialled) {
  auto health = std::make_shared<HealthPeer>(this, reactor_, tag, dialled, clock_notes_.get());
  by_process_[""].insert(health.get());
  return health;
}

std::shared_ptr<HealthPeer> HealthHub::UseDialledInLoop(int device, const SocketAddress& peer) {
  const Key key(device, peer.ToString());
  std::shared_ptr<HealthPeer>& health = dialled_[key];
  if (health == nullptr) {
    uint64_t tag = 0;
    (void)FillRandom(&tag, sizeof(tag));  // Where that fails, the dial's own identity fails too.
    health = MakeInLoop(tag, true);
    keys_[health.get()] = key;
  }
  health->UseInLoop();
  return health;
}

void HealthHub::AcceptInLoop(uint64_t tag, OwnedFd fd, const HealthSettings& settings, Seals seals) {
  std::shared_ptr<HealthPeer> health = FindAcceptedInLoop(tag);
  if (health == nullptr) {
    health = MakeInLoop(tag, false);
    accepted_[tag] = health;
    ++unused_;
  }
  health->UpInLoop(std::move(fd), settings, std::move(seals));
}

void HealthHub::UsedInLoop(const HealthPeer& health) {
  if (FindAcceptedInLoop(health.tag()).get() != &health) return;  // It was forgotten.
  unused_ += health.used_in_loop() ? -1 : 1;
  if (!health.used_in_loop() && patience_ns_ > 0) DropUnusedLaterInLoop(health.tag(), patience_ns_);
}

// A lane of a dead process that holds unread bytes does not count as up, nor does a socket that no connection uses.
bool HealthHub::AnotherIsUpInLoop(HealthPeer* health) {
  const std::string process = health->waits().process();
  if (process.empty()) return false;
  absl::flat_hash_set<HealthPeer*> unknown;
  for (HealthPeer* const one : std::exchange(by_process_[""], {})) {
    const std::string said = one->waits().process();
    said.empty() ? unknown.insert(one) : by_process_[said].insert(one);
  }
  by_process_[""] = std::move(unknown);
  const auto known = by_process_.find(process);
  if (known == by_process_.end()) return false;
  return absl::c_any_of(known->second, [health](HealthPeer* other) {
    return other != health && other->used_in_loop() && (IsUp(*other) || other->members().Lanes(false).up);
  });
}

bool HealthHub::ProcessIsUpInLoop(HealthPeer* health) {
  return IsUp(*health) || health->members().AnyLaneUp() || AnotherIsUpInLoop(health);
}

void HealthHub::ForgetInLoop(HealthPeer* health) {
  for (const std::string& process : {std::string(), health->waits().process()}) {
    const auto known = by_process_.find(process);
    if (known == by_process_.end()) continue;
    known->second.erase(health);
    if (known->second.empty()) by_process_.erase(known);
  }
  const auto dialled = keys_.find(health);
  if (dialled != keys_.end()) {
    const Key key = std::move(dialled->second);
    keys_.erase(dialled);
    dialled_.erase(key);
    return;
  }
  if (FindAcceptedInLoop(health->tag()).get() != health) return;
  if (!health->used_in_loop()) --unused_;
  reactor_->CancelTimerInLoop(drops_[health->tag()]);
  drops_.erase(health->tag());
  accepted_.erase(health->tag());
}

void HealthHub::DropUnusedLaterInLoop(uint64_t tag, int64_t after_ns) {
  patience_ns_ = after_ns;
  if (!accepted_.contains(tag)) return;
  Reactor::TimerId& drop = drops_[tag];
  reactor_->CancelTimerInLoop(drop);
  drop = reactor_->AddDeadlineInLoop(after_ns, [this, tag] {
    drops_.erase(tag);
    const std::shared_ptr<HealthPeer> health = FindAcceptedInLoop(tag);
    if (health == nullptr || health->used_in_loop()) return;
    health->CloseInLoop();
    ForgetInLoop(health.get());
  });
}

void HealthHub::CloseInLoop() {
  for (auto& [key, health] : dialled_) health->CloseInLoop();
  for (auto& [tag, health] : accepted_) health->CloseInLoop();
  for (auto& [tag, drop] : drops_) reactor_->CancelTimerInLoop(drop);
  by_process_.clear();
  keys_.clear();
  dialled_.clear();
  accepted_.clear();
  unused_ = 0;
  drops_.clear();
}

}  // namespace tcpx
