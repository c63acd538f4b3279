#include "net_socket/comm/receive_lanes.h"

#include <sys/socket.h>

#include <utility>

#include "net_socket/comm/tuning.h"

namespace tcpx {

ReceiveLanes::ReceiveLanes(ConnectionSetup* setup, LaneOwner* owner, LaneHealing* healing, Destination* destination)
    : LanesOf(setup, owner,
              ExpressReceiveLane::Settings{setup->lane_fd(0), setup->path(), setup->heals,
                                           setup->runtime->options.encrypt, setup->max_receives > 1},
              &setup->seals(0), destination, &setup->runtime->stages),
      healing_(healing),
      destination_(destination) {
  for (int lane = 1; lane < setup->lane_count(); ++lane) {
    if (setup->lane_fd(lane) < 0) continue;
    Make(lane);
    bulk(lane)->stream().LeaveAnswering();
  }
  complete_ = true;
}

void ReceiveLanes::Make(int lane) {
  // A sender whose lanes heal awaits acknowledgements on the same host, too.
  const bool acks_at_once = !setup_->path().delays_acks || setup_->heals;
  const ReceiveStream::Settings settings{setup_->lane_fd(lane), lane, complete_, acks_at_once};
  auto made = std::make_unique<BulkReceiveLane>(owner_, settings, destination_, &setup_->runtime->stages);
  made->stream().intake().OpenBy(std::move(setup_->seals(lane).opener));
  setup_->seals(lane).sealer = nullptr;  // It says nothing.
  Enter(lane, std::move(made));
}

absl::Status ReceiveLanes::Replace(int lane, SocketOffer offer) {
  if (lane > 0) return bulk(lane)->Replace(std::move(offer));
  healing_->NoteZeroEnd(false);
  return express_.Replace(std::move(offer));
}

void ReceiveLanes::Drive(const PostedReceive& wanted, bool bulk) {
  express_.Pump(wanted);
  if (express_.stream().lost()) healing_->NoteZeroEnd(express_.stream().lost_by_end());
  if (!caller_driven()) return;
  // Without a receive for bulk, bulk lanes can only bring what is too large, or an end: a look now and then is enough.
  if (!bulk && ++passes_ % 16 != 0) return;
  PumpBulk();
}

void ReceiveLanes::PumpBulk() {
  unsigned at = 0;
  for (auto& lane : bulk_) {
    if (lane != nullptr && (at++ / tuning::kIdleLanesAsked == idle_turn_ || !lane->idle())) lane->Pump();
  }
  if (++idle_turn_ * tuning::kIdleLanesAsked >= at) idle_turn_ = 0;
}

void ReceiveLanes::WakeParked(uint64_t posted) {
  if (caller_driven()) return;
  for (auto& lane : bulk_) {
    if (lane != nullptr && lane->TakeParked(posted)) ProgressPool::Kick(lane.get());
  }
}

void ReceiveLanes::WakeStarved() {
  for (auto& lane : bulk_) {
    if (lane != nullptr && lane->TakeStarved()) ProgressPool::Kick(lane.get());
  }
}

bool ReceiveLanes::Any(bool ended) const {
  for (int lane = 0; lane < setup_->lane_count(); ++lane) {
    if (stream(lane) != nullptr && stream(lane)->ended() == ended) return true;
  }
  return false;
}

void ReceiveLanes::TellPeer(absl::string_view why) {
  express_.records().SendError(why);
  for (int lane = 1; lane < setup_->lane_count(); ++lane) shutdown(setup_->lane_fd(lane), SHUT_WR);
}

std::vector<uint64_t> ReceiveLanes::TakenByLane() const {
  std::vector<uint64_t> taken;
  for (int lane = 0; lane < setup_->lane_count(); ++lane) {
    taken.push_back(stream(lane) == nullptr ? 0 : stream(lane)->intake().taken());
  }
  return taken;
}

}  // namespace tcpx
