#include "net_socket/connect/health_dial.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"

namespace tcpx {

HealthSettings HealthSettingsFor(const Options& options, uint64_t features) {
  HealthSettings settings;
  settings.peer_timeout_ns = options.peer_timeout_ns;
  settings.heals = options.heal && (features & kFeatureHealHealth) != 0;
  settings.reconnect_timeout_ns = options.reconnect_timeout_ns;
  settings.linger_ns = options.linger_ns;
  settings.encrypts = options.encrypt;
  return settings;
}

HealthDial::HealthDial(const DialSetup& setup, const std::vector<LanePath>& paths) : dialling_(setup.OfEstablished()) {
  for (const LanePath& path : paths) {
    const bool known = std::any_of(paths_.begin(), paths_.end(), [&path](auto& had) { return had.nic == path.nic; });
    if (!known) paths_.push_back(path);
  }
}

void HealthDial::DialInLoop(std::shared_ptr<HealthPeer> health) {
  if (lane_ != nullptr) return;
  health_ = std::move(health);
  beside_ = false;
  gone_ = false;
  lane_ = std::make_unique<DialLane>(&dialling_, static_cast<DialLane::Owner*>(this), DialLane::kHealth);
  timer_ = dialling_.runtime->reactor.AddTimerInLoop(0, [this] { AwaitFirstDial(); });
}

void HealthDial::AwaitFirstDial() {
  const int64_t at_ns = health_->redials_in_loop().arbiter().TakeFirstDial(0, MonotonicNanos());
  if (at_ns == 0) return lane_->DialInLoop(paths_[0]);
  timer_ = dialling_.runtime->reactor.AddTimerInLoop(at_ns, [this] { AwaitFirstDial(); });
}

void HealthDial::HaltInLoop() {
  dialling_.runtime->reactor.CancelTimerInLoop(timer_);
  lane_.reset();
  health_.reset();
}

const LanePath* HealthDial::OtherPath(const DialLane& lane) {
  if (paths_.size() < 2) return nullptr;
  size_t at = 0;
  while (at + 1 < paths_.size() && paths_[at].nic != lane.path().nic) ++at;
  return &paths_[(at + 1) % paths_.size()];
}

bool HealthDial::Connected(const DialLane&, Hello*) {
  NotRefused();
  gone_ = false;
  beside_ = beside_ || health_->socket().state() == HealthState::kUp;
  return true;
}

bool HealthDial::RefusalIsFinal() {
  gone_ = health_->ended_in_order_in_loop();
  const bool up = dialling_.runtime->health.ProcessIsUpInLoop(health_.get());
  return health_->redials_in_loop().arbiter().Refused(up, gone_ && !beside_, MonotonicNanos());
}

int64_t HealthDial::TakeDialTurn() {
  return health_->redials_in_loop().arbiter().TakeDialTurn(0, false, MonotonicNanos());
}

void HealthDial::Soon(std::function<void(HealthPeer* health)> function) {
  dialling_.runtime->reactor.CancelTimerInLoop(timer_);
  timer_ = dialling_.runtime->reactor.AddTimerInLoop(
      0, [self = shared_from_this(), health = health_, function = std::move(function)] { function(health.get()); });
}

void HealthDial::LaneAnswered(DialLane* lane) {
  const HealthSettings settings = HealthSettingsFor(dialling_.runtime->options, lane->answer().features);
  auto socket = std::make_shared<LaneSocket>(lane->TakeSocket());
  Soon([socket, settings](HealthPeer* health) {
    health->UpInLoop(std::move(socket->fd), settings, std::move(socket->seals));
  });
}

void HealthDial::Finish(absl::Status) {
  Soon([this](HealthPeer* health) { gone_ ? health->GoneInLoop(this) : health->RefusedInLoop(this); });
}

}  // namespace tcpx
