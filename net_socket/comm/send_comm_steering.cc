// What a send comm does with the orders of its pilot (net_socket/send/lane_pilot.h).
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/send_comm.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/send/busy_lanes.h"

namespace tcpx {
namespace {

// From one look at a lane that is to be closed to the next.
constexpr int64_t kCloseNs = 5 * kMillisecond;
// A caller who moves the lanes himself may be idle for long.
constexpr int64_t kCloseMaxNs = 4 * kSecond;

}  // namespace

LaneRates::Settings SendComm::PilotSettings() {
  LaneRates::Settings settings;
  settings.lanes.lanes = std::max(setup().CountLanes() - 1, 1);
  settings.lanes.lanes_max = std::max(lane_count() - 1, 1);
  settings.lanes.opens = setup().steered;
  std::memcpy(&settings.lanes.seed, setup().connection_id.data() + 8, sizeof(settings.lanes.seed));
  settings.piloted = path().steers_lanes;
  settings.shuffled = path().shuffles_lanes && setup().steered;
  if (!setup().steered) return settings;
  settings.ordered = [reactor = &runtime()->reactor, link = LinkTo(this)] {
    reactor->Post([link] { link.With([](SendComm* comm) { comm->SteerLanes(); }); });
  };
  settings.may_open = [runtime = runtime()] {
    return LaneBudget::MayOpen(runtime->lane_budget->left(), runtime->busy_lanes->Count(MonotonicNanos()));
  };
  return settings;
}

void SendComm::SteerLanes() {
  if (failed() || !setup().steered || !healing()->heals()) return;
  NoteFound();
  for (const LaneOrder& order : rates_.TakeOrders()) CarryOut(order);
}

void SendComm::CarryOut(const LaneOrder& order) {
  const int lane = order.lane + 1;
  const size_t index = static_cast<size_t>(lane);
  switch (order.kind) {
    case LaneOrder::Kind::kOpen:
      // An earlier order has come to something by now.
      if (healing()->up(lane) || healing()->lost(lane)) return rates_.Opened(order.lane);
      if (bulk(lane) != nullptr) bulk(lane)->Retire(false);
      setup().redialler->OpenInLoop(lane);
      return;
    case LaneOrder::Kind::kMove:
      if (!healing()->up(lane)) return;
      moving_[index] = true;
      setup().redialler->TryBesideInLoop(lane);
      return;
    case LaneOrder::Kind::kClose:
      moving_[index] = false;
      bulk(lane)->Retire(true);
      if (!caller_driven_) (void)healing()->WithLanes([&] { ProgressPool::Kick(bulk(lane)); });
      runtime()->reactor.RepeatInLoop(kCloseNs, [link = LinkTo(this), lane, after_ns = kCloseNs]() mutable {
        after_ns = std::min(2 * after_ns, kCloseMaxNs);
        return link.Ask(false, [lane](SendComm* comm) { return comm->ClosesLane(lane); }) ? after_ns : Reactor::kOver;
      });
      return;
  }
}

bool SendComm::ClosesLane(int lane) {
  const size_t index = static_cast<size_t>(lane);
  if (failed() || !healing()->heals()) return false;
  if (!parking_[index]) {
    // One that was lost is resumed first: what it holds is to arrive.
    if (!healing()->up(lane) || !bulk(lane)->drained()) return true;
    const auto frozen = watch_->FreezeInLoop(lane);
    if (!frozen.ok()) {
      PeerGone(frozen.status(), lane, false);
      return false;
    }
    if (!healing()->Rest(lane)) {
      watch_->ResumeInLoop(lane, lane_fd(lane), nullptr);  // The same socket.
      return true;
    }
    watch_->RestInLoop(lane);
    parking_[index] = true;
    setup().redialler->ClosedInLoop(lane);
  }
  if (!offered_park_[index]) offered_park_[index] = Park(lane);
  // Else the lane might be opened again while it still has the old one.
  if (!bulk(lane)->parked()) return true;
  parking_[index] = offered_park_[index] = false;
  LaneRested(lane);
  rates_.Closed(lane - 1);
  if (path().shuffles_lanes) TCPX_INFO_TO(setup().communicator->log, "lane %d is closed", lane);
  return false;
}

bool SendComm::Park(int lane) {
  auto fd = StreamSocket(AF_INET);
  if (!fd.ok()) return false;
  const auto socket = std::make_shared<OwnedFd>(*std::move(fd));
  SocketOffer offer;
  offer.fd = socket->get();
  offer.parks = true;
  offer.done = [socket](uint64_t) {};
  if (!caller_driven_) {
    (void)healing()->WithLanes([&] {
      bulk(lane)->Offer(std::move(offer));
      ProgressPool::Kick(bulk(lane));
    });
    return true;
  }
  if (!mutex_.try_lock()) return false;
  MutexLock lock(mutex_, std::adopt_lock);
  const absl::Status parked = bulk(lane)->Replace(std::move(offer));
  if (!parked.ok()) failure().FailFound(parked, lane);  // The link is held.
  return true;
}

void SendComm::NoteFound() {
  const LanePolicy::Found found = rates_.found();
  if (found.lanes == 0 || (found.lanes == found_.lanes && found.bytes_per_second == found_.bytes_per_second)) return;
  const bool news = found.lanes != found_.lanes;
  found_ = found;
  const SocketAddress& peer = setup().lanes[0].peer;
  if (runtime()->lane_notes != nullptr) runtime()->lane_notes->LearnLanes(setup().device, peer, found.lanes);
  if (!news) return;
  TCPX_INFO_TO(setup().communicator->log,
               "comm %x send device %d: %d bulk lanes to %s bring what the network gives: %.0f Mbit/s",
               setup().communicator->id, setup().device, found.lanes, peer.HostString(), found.bytes_per_second * 8e-6);
}

}  // namespace tcpx
