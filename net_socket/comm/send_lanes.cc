#include "net_socket/comm/send_lanes.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace tcpx {

SendLanes::SendLanes(ConnectionSetup* setup, LaneOwner* owner, size_t posted_max, const LaneRates::Settings& rates)
    : LanesOf(setup, owner,
              ExpressSendLane::Settings{setup->lane_fd(0), setup->path().pads_lone_frames, setup->heals,
                                        setup->runtime->options.encrypt || setup->seals(0).sealer != nullptr}),
      rates_(rates),
      idle_(std::max(setup->lane_count() - 1, 1)) {
  express_.stream().SealBy(std::move(setup->seals(0).sealer));
  if (bulk_.empty()) return;
  striper_ = std::make_unique<Striper>(posted_max, static_cast<size_t>(setup->runtime->options.chunk_bytes));
  for (int lane = 1; lane < setup->lane_count(); ++lane) {
    if (setup->lane_fd(lane) >= 0) Make(lane);
  }
}

void SendLanes::Make(int lane) {
  const Options& options = setup_->runtime->options;
  BulkSendLane::Settings settings;
  settings.fd = setup_->lane_fd(lane);
  settings.lane = lane;
  settings.pace = {setup_->path().paced_by_rate, options.chunk_bytes, options.chunk_bytes_min};
  settings.zero_copy = setup_->path().zero_copy;
  settings.heals = setup_->heals;
  settings.seals = express_.stream().seals();
  auto made = std::make_unique<BulkSendLane>(owner_, settings, striper_.get(), &rates_, &idle_,
                                             setup_->runtime->busy_lanes.get());
  made->stream().SealBy(std::move(setup_->seals(lane).sealer));
  idle_.Enter(lane - 1, made.get());
  Enter(lane, std::move(made));
}

void SendLanes::Post(SendRequest* request, bool lone) {
  if (!IsBulk(*request)) return express_.Post(request, lone);
  striper_->Post(request);
  if (!caller_driven()) return idle_.WakeOne();
  if (lone) Drive();
}

void SendLanes::Drive() {
  express_.Flush();
  if (!caller_driven()) return;
  // Where lanes come and go, not always the same ones first: the last would be given too little to be judged.
  if (rates_.piloted() && ++first_pumped_ >= bulk_.size()) first_pumped_ = 0;
  for (size_t i = 0; i < bulk_.size(); ++i) {
    const size_t at = i + first_pumped_;
    if (auto& lane = bulk_[at < bulk_.size() ? at : at - bulk_.size()]) lane->Pump();
  }
}

absl::Status SendLanes::Replace(int lane, SocketOffer offer) {
  return lane == 0 ? express_.stream().Replace(std::move(offer)) : bulk(lane)->Replace(std::move(offer));
}

void SendLanes::Quiesce() {
  idle_.Close();
  LanesOf::Quiesce();
}

void SendLanes::PeerClosed(const std::vector<uint64_t>& taken) {
  if (!taken.empty()) express_.stream().PeerTook(taken[0]);
  if (std::exchange(peer_closed_, true)) return;
  for (size_t i = 0; i < bulk_.size(); ++i) {
    if (bulk_[i] == nullptr) continue;
    const uint64_t had = taken.empty() ? 0 : taken[i + 1];
    if (caller_driven()) {
      bulk_[i]->stream().PeerTook(had);
    } else {
      bulk_[i]->PeerClosed(had);
      ProgressPool::Kick(bulk_[i].get());
    }
  }
}

void SendLanes::TellPeer(absl::string_view) {
  for (int lane = 0; lane < setup_->lane_count(); ++lane) shutdown(setup_->lane_fd(lane), SHUT_RDWR);
}

std::vector<LanePace> SendLanes::Paces() const {
  std::vector<LanePace> paces;
  for (size_t i = 0; i < bulk_.size(); ++i) {
    const int lane = static_cast<int>(i);
    const uint64_t sent = bulk_[i] == nullptr ? 0 : bulk_[i]->stream().counts().bytes.get();
    paces.push_back({rates_.Get(lane), sent, !rates_.piloted() || rates_.Carries(lane)});
  }
  return paces;
}

}  // namespace tcpx
