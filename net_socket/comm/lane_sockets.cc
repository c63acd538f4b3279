#include "net_socket/comm/lane_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

#include "common/log.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"

namespace tcpx {

LaneSockets::LaneSockets(ConnectionSetup* setup, ConnectionEnd* end, const Tie& tie, ConnectionFailure* failure,
                         Mutex* mutex)
    : setup_(setup), end_(end), self_(tie.To(this)), failure_(failure), mutex_(mutex) {
  if (!setup->piloted) return;
  // Where lanes come and go each has its own part of the budget.
  open_lanes_ = std::make_unique<OpenLanes>(setup_->runtime->lane_budget.get());
  for (size_t lane = 1; lane < setup_->lanes.size(); ++lane) {
    if (setup_->lanes[lane].fd.valid()) open_lanes_->Open(lane);
  }
  setup_->taken_lanes.reset();
}

Handover LaneSockets::TakeSocket(int lane, SocketOffer* offer) {
  if (!setup_->heals || failure_->peer_notified() || failure_->peer_left()) return Handover::kRefused;
  // A peer must hear why this end fails, or that it closes, before it is refused.
  if (failure_->failed() || !failure_->heals()) return Handover::kBusy;
  const absl::Status sealed = CheckSealed(setup_->runtime->options.encrypt, offer->seals.get());
  if (!sealed.ok()) {
    failure_->FailFound(sealed, lane);
    return Handover::kRefused;
  }
  if (setup_->lane_fd(lane) < 0) return Open(lane, offer);
  const std::shared_ptr<Seals> seals = offer->seals;
  const uint64_t position = offer->position;
  const auto done = offer->done;
  const bool pooled = end_->lanes()->pool_lane(lane) != nullptr;
  uint64_t taken = 0;
  if (pooled) {
    Reactor* const reactor = &setup_->runtime->reactor;
    offer->done = [reactor, lane, self = self_, seals, position, done](uint64_t now) {
      reactor->Post([lane, self, done, seals, now, position] {
        done(now);
        self.With([&](LaneSockets* one) { one->Resumed(lane, position, now, seals.get()); });
      });
    };
  } else {
    offer->done = [&taken, &done](uint64_t now) { done(taken = now); };
  }
  const Handover handed = HandOver(lane, offer);
  if (handed == Handover::kBusy) offer->done = done;
  if (handed == Handover::kTaken && !pooled) Resumed(lane, position, taken, seals.get());
  return handed;
}

Handover LaneSockets::HandOver(int lane, SocketOffer* offer) {
  if (PoolLane* const pooled = end_->lanes()->pool_lane(lane)) {
    const bool open = table().WithLanes([&] {
      pooled->Offer(std::move(*offer));
      ProgressPool::Kick(pooled);
    });
    return open ? Handover::kTaken : Handover::kBusy;
  }
  if (!mutex_->try_lock()) return Handover::kBusy;
  MutexLock lock(*mutex_, std::adopt_lock);
  if (failure_->failed() || !failure_->heals()) return Handover::kBusy;
  const absl::Status replaced = end_->lanes()->Replace(lane, std::move(*offer));
  if (!replaced.ok()) failure_->FailFound(replaced, lane);
  return Handover::kTaken;
}

// The first socket of a lane.
Handover LaneSockets::Open(int lane, SocketOffer* offer) {
  if (!mutex_->try_lock()) return Handover::kBusy;
  MutexLock lock(*mutex_, std::adopt_lock);
  if (failure_->failed() || !failure_->heals() || !setup_->piloted) return Handover::kRefused;
  if (setup_->runtime->lane_budget->left() <= 0) return Handover::kRefused;
  OwnedFd fd(fcntl(offer->fd, F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return Handover::kRefused;
  LaneSocket& socket = setup_->lanes[static_cast<size_t>(lane)];
  socket.local = LocalAddress(fd.get()).value_or(SocketAddress());
  socket.peer = PeerAddress(fd.get()).value_or(SocketAddress());
  socket.fd = std::move(fd);
  if (offer->seals != nullptr) socket.seals = std::move(*offer->seals);
  end_->LaneOpened(lane);
  table().Back(lane);
  if (!table().WithLanes([&] { end_->lanes()->Make(lane); })) return Handover::kRefused;
  offer->done(0);
  Resumed(lane, 0, 0, &socket.seals);
  // A failure meanwhile may not have seen this socket.
  if (failure_->failed()) shutdown(socket.fd.get(), SHUT_RDWR);
  return Handover::kTaken;
}

void LaneSockets::Resumed(int lane, uint64_t position, uint64_t taken, Seals* seals) {
  if (open_lanes_ != nullptr && lane > 0) open_lanes_->Open(static_cast<size_t>(lane));
  const bool opened = table().TakeOpened(lane);
  const bool sends = setup_->sends();
  LaneHealing& healing = failure_->healing();
  if (!opened) healing.NoteSocket(lane, sends ? position : taken, sends && taken != 0);
  std::string more;
  if (!opened && healing.MayLog(lane, &more)) {
    const int fd = setup_->lane_fd(lane);
    TCPX_INFO_TO(setup_->communicator->log, "comm %x %s device %d: lane %d goes on, %s to %s%s",
                 setup_->communicator->id, DirectionName(setup_->direction), setup_->device, lane,
                 LocalAddress(fd).value_or(SocketAddress()).ToString(),
                 PeerAddress(fd).value_or(SocketAddress()).ToString(), more);
  }
  end_->LaneResumed(lane, seals);
}

void LaneSockets::KickAll() {
  (void)table().WithLanes([this] {
    for (int lane = 0; lane < setup_->lane_count(); ++lane) {
      if (PoolLane* const pooled = end_->lanes()->pool_lane(lane)) ProgressPool::Kick(pooled);
    }
  });
}

}  // namespace tcpx
