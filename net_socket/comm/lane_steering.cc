#include "net_socket/comm/lane_steering.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/tuning.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/send/busy_lanes.h"

namespace tcpx {

LaneRates::Settings LaneSteering::RatesFor(const LaneHealing& healing, const Link<LaneSteering>& self) {
  const ConnectionSetup& setup = healing.setup();
  LaneRates::Settings settings;
  settings.lanes.lanes = std::max(healing.lanes().CountMade() - 1, 1);
  settings.lanes.lanes_max = std::max(setup.lane_count() - 1, 1);
  settings.lanes.piloted = setup.piloted;
  std::memcpy(&settings.lanes.seed, setup.connection_id.data() + 8, sizeof(settings.lanes.seed));
  settings.has_pilot = setup.path().pilots_lanes;
  settings.shuffled = setup.path().shuffles_lanes && setup.piloted;
  if (!setup.piloted) return settings;
  settings.ordered = [reactor = &setup.runtime->reactor, self] {
    reactor->Post([self] { self.With([](LaneSteering* one) { one->CarryOutAll(); }); });
  };
  settings.may_open = [runtime = setup.runtime] {
    return LaneBudget::MayOpen(runtime->lane_budget->left(), runtime->busy_lanes->Count(MonotonicNanos()));
  };
  settings.brought = [runtime = setup.runtime](uint64_t bytes) { return runtime->busy_lanes->Brought(bytes); };
  return settings;
}

void LaneSteering::CarryOutAll() {
  if (!parts_.setup->piloted || !parts_.heals()) return;
  NoteFound();
  for (const LaneOrder& order : parts_.lanes->rates().TakeOrders()) CarryOut(order);
}

void LaneSteering::CarryOut(const LaneOrder& order) {
  const int lane = order.lane + 1;
  LaneTable& table = parts_.healing().lanes();
  BulkSendLane* const bulk = parts_.lanes->bulk(lane);
  switch (order.kind) {
    case LaneOrder::Kind::kOpen:
      // An earlier order has come to something by now.
      if (table.up(lane) || table.lost(lane)) return parts_.lanes->rates().Opened(order.lane);
      if (bulk != nullptr) bulk->Retire(false);
      parts_.setup->redialler->OpenInLoop(lane);
      return;
    case LaneOrder::Kind::kMove:
      if (table.OrderMove(lane)) parts_.setup->redialler->TryBesideInLoop(lane);
      return;
    case LaneOrder::Kind::kClose:
      table.CancelMove(lane);
      bulk->Retire(true);
      if (!parts_.lanes->caller_driven()) (void)table.WithLanes([&] { ProgressPool::Kick(bulk); });
      parts_.setup->runtime->reactor.RepeatInLoop(
          tuning::kCloseNs, [self = self_, lane, after_ns = tuning::kCloseNs]() mutable {
            after_ns = std::min(2 * after_ns, tuning::kCloseMaxNs);
            return self.Ask(false, [lane](LaneSteering* one) { return one->Closes(lane); }) ? after_ns : Reactor::kOver;
          });
      return;
  }
}

bool LaneSteering::Closes(int lane) {
  if (!parts_.heals()) return false;
  if (parts_.healing().lanes().state(lane) == LaneState::kClosed) return !CloseSocket(lane);
  // One that was lost is resumed first: what it holds is to arrive.
  if (!parts_.healing().lanes().up(lane) || !parts_.lanes->bulk(lane)->drained()) return true;
  uint32_t records_taken = 0;
  if (!parts_.Freeze(lane, &records_taken)) return false;
  if (!parts_.healing().lanes().Close(lane, MonotonicNanos())) {
    parts_.watch->WatchInLoop(lane, parts_.setup->lane_fd(lane), nullptr);  // The same socket.
    return true;
  }
  parts_.watch->CloseInLoop(lane);
  parts_.setup->redialler->ClosedInLoop(lane);
  return !CloseSocket(lane);
}

bool LaneSteering::CloseSocket(int lane) {
  auto fd = StreamSocket(AF_INET);
  if (!fd.ok()) return false;
  const auto socket = std::make_shared<OwnedFd>(*std::move(fd));
  SocketOffer offer;
  offer.fd = socket->get();
  offer.closes = true;
  offer.done = [reactor = &parts_.setup->runtime->reactor, self = self_, lane, socket](uint64_t) {
    reactor->Post([self, lane, socket] { self.With([lane](LaneSteering* one) { one->Closed(lane); }); });
  };
  return parts_.sockets->HandOver(lane, &offer) == Handover::kTaken;
}

// Before, the lane might have been opened again while it still had its old socket.
void LaneSteering::Closed(int lane) {
  parts_.lanes->rates().Closed(lane - 1);
  if (parts_.setup->path().shuffles_lanes) TCPX_INFO_TO(parts_.setup->communicator->log, "lane %d is closed", lane);
}

void LaneSteering::ResumedInLoop(int lane) {
  if (lane > 0) parts_.lanes->rates().Opened(lane - 1);
  if (parts_.setup->path().shuffles_lanes) TCPX_INFO_TO(parts_.setup->communicator->log, "lane %d has a socket", lane);
}

void LaneSteering::NoteFound() {
  const LanePolicy::Found found = parts_.lanes->rates().found();
  if (found.lanes == 0 || (found.lanes == found_.lanes && found.bytes_per_second == found_.bytes_per_second)) return;
  const bool news = found.lanes != found_.lanes;
  found_ = found;
  const ConnectionSetup& setup = *parts_.setup;
  const SocketAddress& peer = setup.lanes[0].peer;
  if (setup.runtime->lane_notes != nullptr) setup.runtime->lane_notes->LearnLanes(setup.device, peer, found.lanes);
  if (!news) return;
  TCPX_INFO_TO(setup.communicator->log,
               "comm %x send device %d: %d bulk lanes to %s bring what the network gives: %.0f Mbit/s",
               setup.communicator->id, setup.device, found.lanes, peer.HostString(), found.bytes_per_second * 8e-6);
}

}  // namespace tcpx
