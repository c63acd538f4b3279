// The health sockets of the process.
#include "net_socket/health/health_hub.h"

#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/clock_notes.h"
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

HealthHub::HealthHub(Reactor* reactor) : reactor_(reactor) {}

HealthHub::~HealthHub() = default;

void HealthHub::MeasureClocks() { clock_notes_ = std::make_unique<ClockNotes>(); }

std::shared_ptr<HealthPeer> HealthHub::UseDialledInLoop(int device, const SocketAddress& peer) {
  std::shared_ptr<HealthPeer>& health = dialled_[Key(device, peer.ToString())];
  if (health == nullptr) {
    uint64_t tag = 0;
    (void)FillRandom(&tag, sizeof(tag));  // Where that fails, the dial's own identity fails too.
    health = std::make_shared<HealthPeer>(this, reactor_, tag, true, clock_notes_.get());
  }
  health->UseInLoop();
  return health;
}

std::shared_ptr<HealthPeer> HealthHub::FindAcceptedInLoop(uint64_t tag) {
  auto found = accepted_.find(tag);
  return found == accepted_.end() ? nullptr : found->second;
}

void HealthHub::AcceptInLoop(uint64_t tag, OwnedFd fd, const HealthSettings& settings, Seals seals) {
  std::shared_ptr<HealthPeer> health = FindAcceptedInLoop(tag);
  if (health == nullptr) {
    health = std::make_shared<HealthPeer>(this, reactor_, tag, false, clock_notes_.get());
    accepted_[tag] = health;
    ++unused_;
  }
  health->UpInLoop(std::move(fd), settings, std::move(seals));
}

void HealthHub::LetGoInLoop(uint64_t tag) {
  const std::shared_ptr<HealthPeer> health = FindAcceptedInLoop(tag);
  if (health != nullptr && health->socket().heals()) health->LetGoInLoop();
}

void HealthHub::DiedInLoop(const HealthPeer& health, bool waits) {
  if (died_ != nullptr) died_(health.tag(), waits);
}

void HealthHub::UsedInLoop(const HealthPeer& health) {
  if (FindAcceptedInLoop(health.tag()).get() != &health) return;  // It was forgotten.
  unused_ += health.used_in_loop() ? -1 : 1;
  if (!health.used_in_loop() && patience_ns_ > 0) DropUnusedLaterInLoop(health.tag(), patience_ns_);
}

// A lane of a dead process that holds unread bytes does not count as up, nor does a socket that no connection uses.
bool HealthHub::AnotherIsUpInLoop(HealthPeer* health) const {
  const std::string process = health->waits().peer_name();
  if (process.empty()) return false;
  const auto is_up = [&](const auto& one) {
    HealthPeer* const other = one.second.get();
    if (other == health || !other->used_in_loop() || other->waits().peer_name() != process) return false;
    return IsUp(*other) || other->members().Lanes(false).up;
  };
  return absl::c_any_of(dialled_, is_up) || absl::c_any_of(accepted_, is_up);
}

bool HealthHub::ProcessIsUpInLoop(HealthPeer* health) const {
  return IsUp(*health) || health->members().AnyLaneUp() || AnotherIsUpInLoop(health);
}

void HealthHub::LookInLoop(uint64_t tag) {
  const std::shared_ptr<HealthPeer> health = FindAcceptedInLoop(tag);
  if (health != nullptr) health->OnEvents(0);
}

void HealthHub::ForgetInLoop(HealthPeer* health) {
  for (auto it = dialled_.begin(); it != dialled_.end(); ++it) {
    if (it->second.get() != health) continue;
    dialled_.erase(it);
    return;
  }
  auto found = accepted_.find(health->tag());
  if (found == accepted_.end() || found->second.get() != health) return;
  if (!health->used_in_loop()) --unused_;
  accepted_.erase(found);
  auto drop = drops_.find(health->tag());
  if (drop == drops_.end()) return;
  reactor_->CancelTimerInLoop(drop->second);
  drops_.erase(drop);
}

void HealthHub::DropUnusedLaterInLoop(uint64_t tag, int64_t after_ns) {
  patience_ns_ = after_ns;
  if (!accepted_.contains(tag) || drops_.contains(tag)) return;
  drops_[tag] = reactor_->AddDeadlineInLoop(after_ns, [this, tag] { DropUnusedInLoop(tag); });
}

void HealthHub::DropUnusedInLoop(uint64_t tag) {
  drops_.erase(tag);
  const std::shared_ptr<HealthPeer> health = FindAcceptedInLoop(tag);
  if (health == nullptr || health->used_in_loop()) return;
  health->CloseInLoop();
  ForgetInLoop(health.get());
}

void HealthHub::CloseInLoop() {
  for (auto& [key, health] : dialled_) health->CloseInLoop();
  for (auto& [tag, health] : accepted_) health->CloseInLoop();
  for (auto& [tag, drop] : drops_) reactor_->CancelTimerInLoop(drop);
  dialled_.clear();
  accepted_.clear();
  unused_ = 0;
  drops_.clear();
}

}  // namespace tcpx
