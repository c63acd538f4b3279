#include "net_socket/comm/lane_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

#include "common/log.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"

namespace tcpx {

LaneSockets::LaneSockets(ConnectionSetup* setup, Direction direction, const Tie& tie, Owner* owner,
                         LaneHealing* healing, ConnectionFailure* failure, Mutex* mutex)
    : setup_(setup),
      direction_(direction),
      self_(tie.To(this)),
      owner_(owner),
      healing_(healing),
      failure_(failure),
      mutex_(mutex) {
  if (!setup->piloted) return;
  // Where lanes come and go each has its own part of the budget.
  open_lanes_ = std::make_unique<OpenLanes>(setup_->runtime->lane_budget.get());
  for (size_t lane = 1; lane < setup_->lanes.size(); ++lane) {
    if (setup_->lanes[lane].fd.valid()) open_lanes_->Open(lane);
  }
  setup_->taken_lanes.reset();
}

Handover LaneSockets::TakeSocket(int lane, SocketOffer* offer) {
  if (healing_ == nullptr || failure_->peer_notified() || healing_->lanes().peer_left()) return Handover::kRefused;
  // A peer must hear why this end fails, or that it closes, before it is refused.
  if (failure_->failed() || !healing_->heals()) return Handover::kBusy;
  const absl::Status sealed = CheckSealed(setup_->runtime->options.encrypt, offer->seals.get());
  if (!sealed.ok()) {
    failure_->FailFound(sealed, lane);
    return Handover::kRefused;
  }
  if (setup_->lane_fd(lane) < 0) return Open(lane, offer);
  const std::shared_ptr<Seals> seals = offer->seals;
  const uint64_t position = offer->position;
  if (lanes_->pool_lane(lane) != nullptr) {
    Reactor* const reactor = &setup_->runtime->reactor;
    offer->done = [reactor, lane, self = self_, seals, position, done = std::move(offer->done)](uint64_t taken) {
      reactor->Post([lane, self, done, seals, taken, position] {
        done(taken);
        self.With([&](LaneSockets* one) { one->Resumed(lane, {position, taken}, seals.get()); });
      });
    };
    return HandOver(lane, offer);
  }
  uint64_t taken = 0;
  const auto done = offer->done;
  offer->done = [&taken, &done](uint64_t now) { done(taken = now); };
  const Handover handed = HandOver(lane, offer);
  if (handed == Handover::kBusy) offer->done = done;
  if (handed == Handover::kTaken) Resumed(lane, {position, taken}, seals.get());
  return handed;
}

Handover LaneSockets::HandOver(int lane, SocketOffer* offer) {
  if (PoolLane* const pooled = lanes_->pool_lane(lane)) {
    const bool open = healing_->lanes().WithLanes([&] {
      pooled->Offer(std::move(*offer));
      ProgressPool::Kick(pooled);
    });
    return open ? Handover::kTaken : Handover::kBusy;
  }
  if (!mutex_->try_lock()) return Handover::kBusy;
  MutexLock lock(*mutex_, std::adopt_lock);
  if (failure_->failed() || !healing_->heals()) return Handover::kBusy;
  const absl::Status replaced = lanes_->Replace(lane, std::move(*offer));
  if (!replaced.ok()) failure_->FailFound(replaced, lane);
  return Handover::kTaken;
}

// The first socket of a lane.
Handover LaneSockets::Open(int lane, SocketOffer* offer) {
  if (!mutex_->try_lock()) return Handover::kBusy;
  MutexLock lock(*mutex_, std::adopt_lock);
  if (failure_->failed() || !healing_->heals() || !setup_->piloted) return Handover::kRefused;
  if (setup_->runtime->lane_budget->left() <= 0) return Handover::kRefused;
  OwnedFd fd(fcntl(offer->fd, F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return Handover::kRefused;
  LaneSocket& socket = setup_->lanes[static_cast<size_t>(lane)];
  socket.local = LocalAddress(fd.get()).value_or(SocketAddress());
  socket.peer = PeerAddress(fd.get()).value_or(SocketAddress());
  socket.fd = std::move(fd);
  if (offer->seals != nullptr) socket.seals = std::move(*offer->seals);
  owner_->LaneOpened(lane);
  healing_->lanes().Back(lane);
  if (!healing_->lanes().WithLanes([&] { lanes_->Make(lane); })) return Handover::kRefused;
  offer->done(0);
  Resumed(lane, {}, &socket.seals);
  // A failure meanwhile may not have seen this socket.
  if (failure_->failed()) shutdown(socket.fd.get(), SHUT_RDWR);
  return Handover::kTaken;
}

void LaneSockets::Resumed(int lane, const Place& at, Seals* seals) {
  if (open_lanes_ != nullptr && lane > 0) open_lanes_->Open(static_cast<size_t>(lane));
  const bool opened = healing_->lanes().TakeOpened(lane);
  const bool sends = direction_ == Direction::kSend;
  if (!opened) healing_->NoteSocket(lane, sends ? at.offered : at.done, sends && at.done != 0);
  std::string more;
  if (!opened && healing_->MayLog(lane, &more)) {
    const int fd = setup_->lane_fd(lane);
    TCPX_INFO_TO(setup_->communicator->log, "comm %x %s device %d: lane %d goes on, %s to %s%s",
                 setup_->communicator->id, DirectionName(direction_), setup_->device, lane,
                 LocalAddress(fd).value_or(SocketAddress()).ToString(),
                 PeerAddress(fd).value_or(SocketAddress()).ToString(), more);
  }
  owner_->LaneResumed(lane, seals);
}

void LaneSockets::KickAll() {
  (void)healing_->lanes().WithLanes([this] {
    for (int lane = 0; lane < setup_->lane_count(); ++lane) {
      if (PoolLane* const pooled = lanes_->pool_lane(lane)) ProgressPool::Kick(pooled);
    }
  });
}

}  // namespace tcpx
