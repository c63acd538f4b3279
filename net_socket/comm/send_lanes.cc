#include "net_socket/comm/send_lanes.h"

#include <algorithm>
#include <utility>

#include "net_socket/comm/runtime.h"

namespace tcpx {
namespace {

ExpressSendLane::Settings ExpressSettings(const ConnectionSetup& setup, size_t posted_max, bool seals) {
  ExpressSendLane::Settings settings;
  settings.fd = setup.lane_fd(0);
  settings.posted_max = posted_max;
  settings.pads_lone_frames = setup.path().pads_lone_frames;
  settings.heals = setup.heals;
  settings.seals = seals;
  return settings;
}

}  // namespace

SendLanes::SendLanes(ConnectionSetup* setup, LaneOwner* owner, size_t posted_max, const LaneRates::Settings& rates)
    : EndLanes(setup->runtime->pool == nullptr),
      setup_(setup),
      owner_(owner),
      seals_(setup->runtime->options.encrypt || setup->seals(0).sealer != nullptr),
      express_(owner, ExpressSettings(*setup, posted_max, seals_)),
      rates_(rates),
      idle_(std::max(setup->lane_count() - 1, 1)),
      bulk_(static_cast<size_t>(setup->lane_count() - 1)) {
  express_.SealBy(std::move(setup->seals(0).sealer));
  if (bulk_.empty()) return;
  const Options& options = setup->runtime->options;
  striper_ = std::make_unique<Striper>(posted_max, Striper::Limits{static_cast<size_t>(options.chunk_bytes_min),
                                                                   static_cast<size_t>(options.chunk_bytes)});
  for (int lane = 1; lane < setup->lane_count(); ++lane) {
    if (setup->lane_fd(lane) >= 0) Make(lane);
  }
}

void SendLanes::Make(int lane) {
  const Options& options = setup_->runtime->options;
  BulkSendLane::Settings settings;
  settings.fd = setup_->lane_fd(lane);
  settings.lane = lane;
  settings.paced_by_rate = setup_->path().paced_by_rate;
  settings.zero_copy = setup_->path().zero_copy;
  settings.chunk_bytes = options.chunk_bytes;
  settings.chunk_bytes_min = options.chunk_bytes_min;
  settings.heals = setup_->heals;
  settings.seals = seals_;
  auto& made = bulk_[static_cast<size_t>(lane) - 1];
  made = std::make_unique<BulkSendLane>(owner_, settings, striper_.get(), &rates_, &idle_,
                                        setup_->runtime->busy_lanes.get());
  made->SealBy(std::move(setup_->seals(lane).sealer));
  idle_.Enter(lane - 1, made.get());
  if (!caller_driven()) setup_->runtime->pool->Attach(made.get(), setup_->device);
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
  return lane == 0 ? express_.Replace(std::move(offer)) : bulk(lane)->Replace(std::move(offer));
}

void SendLanes::Quiesce() {
  idle_.Close();
  for (auto& lane : bulk_) {
    if (lane != nullptr) ProgressPool::Detach(lane.get());
  }
}

void SendLanes::PeerClosed(const std::vector<uint64_t>& taken) {
  if (!taken.empty()) express_.PeerTook(taken[0]);
  if (std::exchange(peer_closed_, true)) return;
  for (size_t i = 0; i < bulk_.size(); ++i) {
    if (bulk_[i] == nullptr) continue;
    const uint64_t had = taken.empty() ? 0 : taken[i + 1];
    if (caller_driven()) {
      bulk_[i]->PeerTook(had);
    } else {
      bulk_[i]->PeerClosed(had);
      ProgressPool::Kick(bulk_[i].get());
    }
  }
}

std::vector<LanePace> SendLanes::Paces() const {
  std::vector<LanePace> paces;
  for (size_t i = 0; i < bulk_.size(); ++i) {
    const int lane = static_cast<int>(i);
    const uint64_t sent = bulk_[i] == nullptr ? 0 : bulk_[i]->bytes_sent();
    paces.push_back({rates_.Get(lane), sent, !rates_.piloted() || rates_.Carries(lane)});
  }
  return paces;
}

}  // namespace tcpx
