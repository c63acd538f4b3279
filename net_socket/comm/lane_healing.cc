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

std::vector<bool> HaveSockets(const ConnectionSetup& setup) {
  std::vector<bool> have;
  for (const LaneSocket& lane : setup.lanes) have.push_back(lane.fd.valid());
  return have;
}

}  // namespace

LaneHealing::LaneHealing(const ConnectionSetup* setup, Direction direction, Link<Owner> owner)
    : setup_(setup),
      direction_(direction),
      owner_(std::move(owner)),
      lanes_(direction, HaveSockets(*setup)),
      silences_(setup->lanes.size()) {}

bool LaneHealing::Note(LaneTable::Why by, const absl::Status& why, int lane, bool* first) {
  const LaneTable::Loss loss = lanes_.Lose(lane, by, MonotonicNanos());
  *first = loss == LaneTable::Loss::kNoted;
  setup_->activity->Note();
  if (*first) {
    TCPX_INFO_TO(setup_->communicator->log, "comm %x %s device %d: lane %d to %s %s and will be resumed: %s",
                 setup_->communicator->id, DirectionName(direction_), setup_->device, lane,
                 setup_->lanes[static_cast<size_t>(lane)].peer.ToString(),
                 by == LaneTable::Why::kDied ? "is lost" : "is let go", std::string(why.message()));
  }
  return loss != LaneTable::Loss::kRefused;
}

bool LaneHealing::LetGo(const absl::Status& why, int lane) {
  bool first = false;
  return Note(LaneTable::Why::kLetGo, why, lane, &first);
}

bool LaneHealing::Lose(const absl::Status& why, int lane) {
  if (!heals() || !absl::IsUnavailable(why)) return false;
  // A peer that closes, or that has failed, says so before its lanes end.
  setup_->health->Ask();
  if (setup_->health->socket().PeerVanished()) return false;
  bool first = false;
  if (!Note(LaneTable::Why::kDied, why, lane, &first)) return false;
  if (!first) return true;
  // Perhaps only this end knows: the sender, who dials, then learns it. A sender's own end would count as
  // unacknowledged.
  if (direction_ == Direction::kReceive) {
    shutdown(setup_->lanes[static_cast<size_t>(lane)].fd.get(), SHUT_RDWR);
  }
  setup_->runtime->reactor.Post([owner = owner_, lane] { owner.With([lane](Owner* one) { one->LaneLost(lane); }); });
  return true;
}

ConnectionCounts LaneHealing::tally() const {
  ConnectionCounts tally = lanes_.tally();
  tally.health = health_.load(std::memory_order_relaxed);
  return tally;
}

bool LaneHealing::NoneFor(int64_t ns) const { return lanes_.NoneFor(ns, MonotonicNanos()); }

void LaneHealing::AwaitInLoop(std::function<bool()> awaits) {
  if (std::exchange(awaiting_, true)) return;
  setup_->runtime->reactor.RepeatDeadlineInLoop(
      kAskNs, [awaits = std::move(awaits)] { return awaits() ? kAskNs : Reactor::kOver; });
}

}  // namespace tcpx
