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
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/address.h"
#include "common/log.h"
#include "net_socket/connect/accept_watch.h"
#include "net_socket/connect/listening.h"
#include "net_socket/connect/pending_connection.h"
#include "net_socket/connect/rejected_peers.h"
#include "net_socket/connect/unaccepted.h"

namespace tcpx {

class PendingConnections {
 public:
  // Those of one health socket. Each time that it comes or ends all of them are looked at, and a stranger could have it
  // come again and again. A process dials another one with 512 lanes at a time (dial_turns.h).
  static constexpr size_t kOfOneTagMax = 1024;

  // The part of the process's descriptors that all that is not accepted may take (unaccepted.h). Source: chosen, not
  // measured; sockets of strangers and bulk lanes may take a quarter each, so this leaves the last to the application.
  static constexpr int64_t kUnacceptedShare = 4;

  // It has all that it waits for.
  using Established = std::function<void(const ConnectionId& id, PendingConnection* pending)>;

  PendingConnections(Runtime* runtime, AcceptWatch* watch, RejectedPeers* rejected, Established established)
      : runtime_(runtime), watch_(watch), rejected_(rejected), established_(std::move(established)) {}

  // Whether the hello's lane may come, to *out. `from`: who says the hello.
  HelloStatus AdmitInLoop(const Hello& hello, const SocketAddress& from, const std::shared_ptr<Listening>& listening,
                          PendingConnection** out);
  // Asks, in the reactor, for one more lane of a connection that is established: counted until it is accepted.
  std::function<bool()> MayOpen(const std::shared_ptr<UnacceptedPlace>& place);
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
  // Whether so many more fit.
  bool HasRoomInLoop(int64_t descriptors) const;
  // May end another connection, which has had the free place for its time.
  bool HasRoomForInLoop(const std::shared_ptr<UnacceptedPlace>& place, int64_t descriptors);
  HelloStatus AdmitNewInLoop(const Hello& hello, const SocketAddress& from,
                             const std::shared_ptr<Listening>& listening);
  // Those whose health socket it is.
  std::vector<ConnectionId> OfTagInLoop(uint64_t tag) const;
  void LaneStirredInLoop(const ConnectionId& id, size_t lane, bool ended);
  // True exactly when it is no longer pending: it has all that it waits for, or its dialler sends nonsense.
  bool CompleteInLoop(const ConnectionId& id);
  // It was given time enough. When to look again.
  int64_t ExpireInLoop(const ConnectionId& id);
  // `waited_ns`: for what it lacks. `why`: with what else it is closed for, after ", ".
  void CloseLateInLoop(const ConnectionId& id, int64_t waited_ns, const char* why);
  void DropInLoop(const ConnectionId& id);
  std::unique_ptr<PendingConnection> TakeInLoop(const ConnectionId& id);

  Runtime* const runtime_;
  AcceptWatch* const watch_;
  RejectedPeers* const rejected_;
  const Established established_;
  const PendingConnection::Stirred stirred_ = [this](const ConnectionId& id, size_t lane, bool ended) {
    LaneStirredInLoop(id, lane, ended);
  };
  // Descriptors of those that are not accepted. A place may outlive us.
  const std::shared_ptr<std::atomic<int64_t>> unaccepted_ = std::make_shared<std::atomic<int64_t>>(0);
  LineLimit late_lines_;  // of what is closed because it lacks something
  absl::flat_hash_map<ConnectionId, std::unique_ptr<PendingConnection>> pending_;
  absl::flat_hash_map<uint64_t, absl::flat_hash_set<ConnectionId>> by_tag_;  // the ids in pending_; none is empty
};

}  // namespace tcpx
