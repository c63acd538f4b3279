// pending_connections.h: the connections that lack something: lanes, the health socket, or the dialler's word.
//
// Threads: the reactor.
// Lifetime: borrows the runtime, the watch and the rejected peers.
// States:  pending (pending_connection.h) -> given to the owner once established, or dropped. With the last of its
//          lanes a connection is forgotten, its id too.
// Errors:  as answers to the dialler; a connection whose dialler talks nonsense is dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "net_socket/connect/accept_watch.h"
#include "net_socket/connect/listening.h"
#include "net_socket/connect/pending_connection.h"
#include "net_socket/connect/rejected_peers.h"

namespace tcpx {

// What connections hold that the application has not accepted.
// Purpose: who has a ticket can complete connections, dial health sockets for none, and take every descriptor with
//          them. All of these together get a quarter of the process's; beyond that a listen has one connection, which
//          is what NCCL makes of each: so no crowd takes a peer's place.
// Threads: any.
// Units:   descriptors.
// Lifetime: a place may outlive this.
class Unaccepted {
 public:
  // One of so many parts of its descriptors a process has for them.
  static constexpr int64_t kShare = 4;

  // Those of one connection, until it is accepted or gone. `of_listen`: counts the connections of its listen.
  std::shared_ptr<const void> Take(int64_t descriptors, std::shared_ptr<std::atomic<int>> of_listen) {
    ++*of_listen;
    *taken_ += descriptors;
    const auto give_back = [taken = taken_, descriptors, of_listen](const void*) {
      *taken -= descriptors;
      --*of_listen;
    };
    return std::shared_ptr<const void>(taken_.get(), give_back);
  }

  // Whether so many more fit, with `others` that are held already. `limit`: of the process; below 0: unknown.
  bool HasRoom(int64_t descriptors, int64_t others, int64_t limit) const {
    return limit < 0 || *taken_ + others + descriptors <= limit / kShare;
  }

 private:
  const std::shared_ptr<std::atomic<int64_t>> taken_ = std::make_shared<std::atomic<int64_t>>(0);
};

class PendingConnections {
 public:
  // It has all that it waits for.
  using Established = std::function<void(const ConnectionId& id, PendingConnection* pending)>;

  PendingConnections(Runtime* runtime, AcceptWatch* watch, RejectedPeers* rejected, Established established);

  // Whether the hello's lane may come, to *out.
  HelloStatus AdmitInLoop(const Hello& hello, const std::shared_ptr<Listening>& listening, PendingConnection** out);
  void AddLaneInLoop(const Hello& hello, LaneSocket socket, PendingConnection* pending);
  // A health socket is asked for: closes what its diallers have given up. Whether it may come: unless it is for a
  // connection that is here it is one more that nobody uses.
  HelloStatus AdmitHealthInLoop(uint64_t tag);
  void HealthCameInLoop(uint64_t tag);
  // Ends the wait for a dialler that has died with all its answers: its health socket has ended, or, where it `waits`
  // for another one, that and lane 0.
  void HealthDiedInLoop(uint64_t tag, bool waits);
  // The one with most lanes.
  std::optional<AcceptWatch::Partial> FindPartialInLoop(const AcceptWait& wait) const;
  void DropIfEmptyInLoop(const ConnectionId& id);
  void DropOfInLoop(const std::shared_ptr<Listening>& listening);
  void CloseInLoop();

 private:
  bool HasRoomInLoop(int64_t descriptors) const;
  HelloStatus AdmitNewInLoop(const Hello& hello, const std::shared_ptr<Listening>& listening);
  // Those whose health socket it is.
  std::vector<ConnectionId> OfTagInLoop(uint64_t tag) const;
  void LaneStirredInLoop(const ConnectionId& id, size_t lane, bool ended);
  // True exactly when it is no longer pending: it has all that it waits for, or its dialler sends nonsense.
  bool CompleteInLoop(const ConnectionId& id);
  bool BecomeWholeInLoop(PendingConnection* pending);
  void AwaitInLoop(const ConnectionId& id, PendingConnection* pending);
  // It was given time enough.
  void ExpireInLoop(const ConnectionId& id);
  void DropInLoop(const ConnectionId& id);

  Runtime* const runtime_;
  AcceptWatch* const watch_;
  RejectedPeers* const rejected_;
  const Established established_;
  const PendingConnection::Stirred stirred_;
  Unaccepted unaccepted_;
  absl::flat_hash_map<ConnectionId, std::unique_ptr<PendingConnection>> pending_;
};

}  // namespace tcpx
