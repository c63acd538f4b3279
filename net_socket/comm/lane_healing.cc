#include "net_socket/comm/lane_healing.h"

#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/runtime.h"

namespace tcpx {
namespace {

// Whether lanes have come back to the end that waits for them.
constexpr int64_t kAskNs = 500 * kMillisecond;

}  // namespace

LaneHealing::LaneHealing(const ConnectionSetup* setup, Direction direction, Link<Owner> owner)
    : setup_(setup),
      direction_(direction),
      owner_(std::move(owner)),
      silences_(setup->lanes.size()),
      unheard_(setup->lanes.size(), false),
      states_(setup->lanes.size(), State::kNone),
      opened_(setup->lanes.size(), false),
      lost_ns_(setup->lanes.size(), 0) {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (setup->lanes[i].fd.valid()) states_[i] = State::kUp;
  }
  up_count_ = std::count(states_.begin(), states_.end(), State::kUp);
}

bool LaneHealing::NoteLoss(const absl::Status& why, int lane, bool dead, bool* first) {
  MutexLock lock(mutex_);
  if (closed_ || !heals()) return false;
  State& state = states_[static_cast<size_t>(lane)];
  *first = state == State::kUp;
  if (!*first) return true;
  state = State::kLost;
  lost_ns_[static_cast<size_t>(lane)] = MonotonicNanos();
  if (--up_count_ == 0) none_since_ns_ = lost_ns_[static_cast<size_t>(lane)];
  TCPX_INFO_TO(setup_->communicator->log, "comm %x %s device %d: lane %d to %s %s and will be resumed: %s",
               setup_->communicator->id, DirectionName(direction_), setup_->device, lane,
               setup_->lanes[static_cast<size_t>(lane)].peer.ToString(), dead ? "is lost" : "is let go",
               std::string(why.message()));
  return true;
}

bool LaneHealing::LetGo(const absl::Status& why, int lane) {
  bool first = false;
  if (!NoteLoss(why, lane, false, &first)) return false;
  if (first) moved_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void LaneHealing::LookInLoop() {
  setup_->runtime->reactor.RepeatInLoop(LaneSilence::kEveryNs, [owner = owner_] {
    const auto look = [](Owner* one) { return one->LooksForSilence(MonotonicNanos()); };
    return owner.Ask(false, look) ? LaneSilence::kEveryNs : Reactor::kOver;
  });
}

bool LaneHealing::Lose(const absl::Status& why, int lane) {
  if (!heals() || !absl::IsUnavailable(why)) return false;
  // A peer that closes, or that has failed, says so before its lanes end.
  setup_->health->Ask();
  if (setup_->health->socket().PeerVanished()) return false;
  bool first = false;
  if (!NoteLoss(why, lane, true, &first)) return false;
  if (!first) return true;
  lost_ever_.fetch_add(1, std::memory_order_relaxed);
  // Perhaps only this end knows: the sender, who dials, then learns it. A sender's own end would count as unacknowledged.
  if (direction_ == Direction::kReceive) {
    shutdown(setup_->lanes[static_cast<size_t>(lane)].fd.get(), SHUT_RDWR);
  }
  setup_->runtime->reactor.Post([owner = owner_, lane] { owner.With([lane](Owner* one) { one->LaneLost(lane); }); });
  return true;
}

void LaneHealing::Back(int lane) {
  MutexLock lock(mutex_);
  State& state = states_[static_cast<size_t>(lane)];
  if (state == State::kUp) return;
  opened_[static_cast<size_t>(lane)] = state != State::kLost;
  if (state != State::kLost) added_.fetch_add(1, std::memory_order_relaxed);
  state = State::kUp;
  ++up_count_;
  none_since_ns_ = 0;
}

bool LaneHealing::Rest(int lane) {
  MutexLock lock(mutex_);
  State& state = states_[static_cast<size_t>(lane)];
  if (closed_ || !heals() || state != State::kUp) return false;
  // Its others may be lost at the receiver only; the sender never closes the last.
  if (up_count_ == 1 && direction_ == Direction::kSend) return false;
  state = State::kResting;
  dropped_.fetch_add(1, std::memory_order_relaxed);
  if (--up_count_ == 0) none_since_ns_ = MonotonicNanos();
  if (direction_ == Direction::kReceive) {
    setup_->runtime->reactor.Post(
        [owner = owner_, lane] { owner.With([lane](Owner* one) { one->LaneRested(lane); }); });
  }
  return true;
}

int64_t LaneHealing::lost_since_ns(int lane) {
  MutexLock lock(mutex_);
  const auto index = static_cast<size_t>(lane);
  return states_[index] == State::kLost ? lost_ns_[index] : 0;
}

bool LaneHealing::NoneFor(int64_t ns) {
  MutexLock lock(mutex_);
  return none_since_ns_ != 0 && MonotonicNanos() - none_since_ns_ >= ns;
}

bool LaneHealing::AnyLost() {
  MutexLock lock(mutex_);
  return AnyLostLocked();
}

bool LaneHealing::AnyLostLocked() const {
  return std::find(states_.begin(), states_.end(), State::kLost) != states_.end();
}

void LaneHealing::AwaitInLoop(std::function<bool()> awaits) {
  if (std::exchange(awaiting_, true)) return;
  setup_->runtime->reactor.RepeatDeadlineInLoop(
      kAskNs, [awaits = std::move(awaits)] { return awaits() ? kAskNs : Reactor::kOver; });
}

bool LaneHealing::lost(int lane) {
  MutexLock lock(mutex_);
  return states_[static_cast<size_t>(lane)] == State::kLost;
}

bool LaneHealing::absent(int lane) {
  MutexLock lock(mutex_);
  const State state = states_[static_cast<size_t>(lane)];
  return state == State::kNone || state == State::kResting;
}

bool LaneHealing::TakeOpened(int lane) {
  MutexLock lock(mutex_);
  const bool opened = opened_[static_cast<size_t>(lane)];
  opened_[static_cast<size_t>(lane)] = false;
  return opened;
}

bool LaneHealing::up(int lane) {
  MutexLock lock(mutex_);
  return states_[static_cast<size_t>(lane)] == State::kUp;
}

bool LaneHealing::PeerLeft(const std::vector<uint64_t>& taken) {
  MutexLock lock(mutex_);
  if (taken.size() == states_.size()) taken_at_end_ = taken;
  peer_left_.store(true, std::memory_order_release);
  heals_.store(false, std::memory_order_release);
  return AnyLostLocked();
}

std::vector<uint64_t> LaneHealing::TakenAtEnd() {
  MutexLock lock(mutex_);
  return taken_at_end_;
}

void LaneHealing::Close() {
  MutexLock lock(mutex_);
  heals_.store(false, std::memory_order_release);
  closed_ = true;
}

}  // namespace tcpx
