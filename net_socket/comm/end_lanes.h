// end_lanes.h: the lanes of one end of a connection: as parts that work in both directions see them, and what both
// directions' have in common.
//
// Threads: as its functions say; else the calling thread, under the comm's mutex.
// Lifetime: LanesOf borrows all that it is given. Quiesce comes before the destructor. Errors: Replace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/engine/progress_pool.h"
#include "net_socket/health/slow_lanes.h"
#include "net_socket/message/counts.h"
#include "net_socket/message/lane_owner.h"

namespace tcpx {

class EndLanes {
 public:
  // What a progress thread moves; null: the calling thread moves the lane. In the reactor.
  virtual PoolLane* pool_lane(int lane) const = 0;
  // Makes what moves a bulk lane that has its first socket. Under the comm's mutex.
  virtual void Make(int lane) = 0;
  // Gives a lane that the calling thread moves another socket. Not OK: it can't have it. The same.
  virtual absl::Status Replace(int lane, SocketOffer offer) = 0;
  // What a lane has moved; null: it never had a socket. From any thread.
  virtual const LaneCounts* counts(int lane) const = 0;
  // Bytes per second; 0: not known, or the lane does not send. From any thread.
  virtual int64_t pace(int lane) const = 0;
  // The lane has read what nobody has passed on: it lies here as what the kernel has. From any thread.
  virtual bool holds(int lane) const = 0;
  // The same, of a message without a receive: it waits for that, or for what the peer has left out.
  virtual bool parked(int lane) const = 0;
  // True once a lane of the peer's has ended in order: nothing more comes on it. From any thread.
  virtual bool AnyEnded() const = 0;
  // The pace of the lanes that carry bulk messages, by lane index from 1 on; empty where there is none to compare. In
  // the reactor.
  virtual std::vector<LanePace> Paces() const = 0;
  // Lets the peer learn of a failure at once. From any thread.
  virtual void TellPeer(absl::string_view why) = 0;

 protected:
  ~EndLanes() = default;
};

// `Express` is lane 0, which the calling thread moves; a `Bulk` moves each other lane, in the progress pool or, without
// one, for the calling thread too. `Stream` is what each has. Which lanes have a socket is LaneTable's to say.
template <typename Express, typename Bulk, typename Stream>
class LanesOf : public EndLanes {
 public:
  // There is no progress pool.
  bool caller_driven() const { return caller_driven_; }
  Express& express() { return express_; }
  const Express& express() const { return express_; }
  // Null, here and below: the lane never had a socket.
  Bulk* bulk(int lane) const { return bulk_[static_cast<size_t>(lane) - 1].get(); }
  const Stream* stream(int lane) const {
    if (lane == 0) return &express_.stream();
    return bulk(lane) == nullptr ? nullptr : &bulk(lane)->stream();
  }
  PoolLane* pool_lane(int lane) const override { return lane == 0 || caller_driven_ ? nullptr : bulk(lane); }
  const LaneCounts* counts(int lane) const override {
    return stream(lane) == nullptr ? nullptr : &stream(lane)->counts();
  }
  // Returns once no thread but the caller's touches the lanes. May be called again.
  void Quiesce() {
    for (auto& lane : bulk_) {
      if (lane != nullptr) ProgressPool::Detach(lane.get());
    }
  }

 protected:
  // `express`: what lane 0 is made of, after its owner.
  template <typename... Args>
  LanesOf(ConnectionSetup* setup, LaneOwner* owner, Args&&... express)
      : setup_(setup),
        owner_(owner),
        caller_driven_(setup->runtime->pool == nullptr),
        express_(owner, std::forward<Args>(express)...),
        bulk_(static_cast<size_t>(setup->lane_count() - 1)) {}
  ~LanesOf() = default;
  // From here on the lane is moved.
  void Enter(int lane, std::unique_ptr<Bulk> made) {
    bulk_[static_cast<size_t>(lane) - 1] = std::move(made);
    if (!caller_driven_) setup_->runtime->pool->Attach(bulk(lane), setup_->device);
  }

  ConnectionSetup* const setup_;
  LaneOwner* const owner_;
  const bool caller_driven_;
  Express express_;
  std::vector<std::unique_ptr<Bulk>> bulk_;
};

}  // namespace tcpx
