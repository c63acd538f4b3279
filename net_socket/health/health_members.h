// health_members.h: the connections that share a health socket, and the notices that their ends give each other on it.
//
// Purpose: what the peer says reaches the connection that it is about. One whose dialler may fail before this end has
//          it whole is expected: what is said of it meanwhile is kept until it joins.
// Threads: any; Join, and what asks all of them, in the reactor.
// Lifetime: borrows the socket, which outlives it.
// Units:   nanoseconds.
// Errors:  none of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/mutex.h"
#include "net_socket/engine/link.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/health/health_socket.h"
#include "net_socket/health/health_user.h"
#include "net_socket/message/health_records.h"

namespace tcpx {

class HealthMembers {
 public:
  explicit HealthMembers(HealthSocket* socket) : socket_(socket) {}

  void Expect(const ConnectionId& id);
  // Hears at once what was said of it before. True: it was expected.
  bool Join(const ConnectionId& id, Link<HealthUser> user);
  void Leave(const ConnectionId& id);
  // The peer's process no longer knows this connection, which hears of that once, and of nothing else.
  void Refuse(const ConnectionId& id);
  bool empty() const;

  // Tells the peer that its end of this connection has to fail; or, `parting`, why it will, if it goes on. False: there
  // is nobody to tell, or not now: a socket that is lost tells it later.
  bool Notify(const ConnectionId& id, const std::string& cause, bool parting = false);
  // Tells the peer that this end of the connection is closed.
  void NotifyLeft(const ConnectionId& id, const std::vector<uint64_t>& taken = {});
  // Asks the peer, which dials, to try a second socket in addition to this lane's. False: the health socket is lost
  // itself.
  bool AskForAnother(const ConnectionId& id, int lane);

  // What the peer has said of a connection. False: none that has joined.
  bool Deliver(const HealthNotice& notice);
  template <typename Function>
  void TellAll(Function function) {
    for (const Link<HealthUser>& user : Users()) user.With(function);
  }
  // Whether at least one lane heard from the peer's kernel within `ns`.
  bool HeardWithin(int64_t ns);
  bool AnyLaneUp();
  // What tells a dialled end whether the peer's process is gone: how long its connections have had no lane, where a
  // lane, or else the health socket (`in_order`), ended with a FIN.
  ProcessEvidence Lanes(bool in_order);

 private:
  struct Member {
    Link<HealthUser> user;              // to nobody exactly while it is expected
    std::vector<HealthNotice> notices;  // what it has missed
  };

  std::vector<Link<HealthUser>> Users();

  HealthSocket* const socket_;
  mutable Mutex mutex_;  // never held while a link is used
  absl::flat_hash_map<ConnectionId, Member> members_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx
