// pending_connection.h: a connection that is being accepted: its lanes, until its dialler says that all of them are up.
//
// Purpose: answers complete nothing, but the dialler's word, kEstablished on lane 0 (README.md). An older dialler says
//          nothing, and its last lane is taken for the word.
// States:  lanes are missing, or their health socket -> whole -> established. A lane that ends, or that was dialled
//          again (Hello::attempt), leaves its place. Once the connection is whole, a lane keeps its place as
//          long as lane 0 is up: its dialler may have confirmed and closed at once, and the confirmation may still be
//          under way.
// Threads: the reactor.
// Lifetime: borrows the runtime; `stirred` outlives it. A lane may be destroyed within `stirred`.
// Errors:  every byte that comes in is hostile: Hear.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "net_socket/comm/connection_setup.h"
#include "net_socket/connect/listening.h"
#include "net_socket/connect/unaccepted.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/health_peer.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class PendingConnection {
 public:
  // The lane has ended, or something has come on lane 0.
  using Stirred = std::function<void(const ConnectionId& id, size_t lane, bool ended)>;

  // `hello`: the first of its lanes.
  PendingConnection(Reactor* reactor, std::shared_ptr<Listening> listening, const Hello& hello, const Stirred* stirred,
                    std::shared_ptr<UnacceptedPlace> place);
  ~PendingConnection();

  // Whether the hello's lane may come; if so, what it replaces and what else its dialler has given up is closed.
  HelloStatus MakePlaceFor(const Hello& hello);
  void Add(const Hello& hello, LaneSocket socket);
  void EndLane(size_t lane);
  // Closes what its dialler has given up. Before anything that would make it whole.
  void Prune();

  // All lanes are here, and `health`, null where there is none. May be called again, with a later one.
  void BecomeWhole(const std::shared_ptr<HealthPeer>& health);
  bool whole() const { return whole_; }
  // Lane 0 has ended.
  bool first_left() const;
  // Once whole: what its dialler has said. kAccepted: that all lanes are up; nullopt: nothing yet; else it is rejected.
  std::optional<HelloStatus> Hear();
  // The sockets of an established connection, in the order of the lanes, and its health socket.
  std::vector<LaneSocket> TakeLanes();
  std::shared_ptr<HealthPeer> TakeHealth() { return std::exchange(health_, nullptr); }

  const std::shared_ptr<Listening>& listening() const { return listening_; }
  const Hello& hello() const { return hello_; }
  // It is to say kEstablished.
  bool speaks() const { return (hello_.features & kFeatureEstablished) != 0; }
  const SocketAddress& from() const { return from_; }
  size_t lanes() const { return lanes_.size(); }
  size_t present() const;
  std::weak_ptr<HealthPeer> health() const { return health_; }

  // The owner's.
  Reactor::TimerId timer{0, 0};
  std::shared_ptr<UnacceptedPlace> place;  // holds the lanes that are here, and a health socket

 private:
  class Lane;

  // Lanes have come or gone.
  void Count() { place->Hold(1 + static_cast<int64_t>(present())); }

  Reactor* const reactor_;
  const std::shared_ptr<Listening> listening_;
  const Stirred* const stirred_;
  Hello hello_;                               // of lane 0
  SocketAddress from_;                        // of lane 0, or of the first that came
  std::vector<std::unique_ptr<Lane>> lanes_;  // null: missing
  bool whole_ = false;
  std::shared_ptr<HealthPeer> health_;  // once it was whole; used until then
};

}  // namespace tcpx
