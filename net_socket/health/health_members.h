// health_members.h: the connections that share a health socket, and what it tells and asks them.
//
// Purpose: what the peer says reaches the connection that it is about. One whose dialler may fail before this end has
//          it whole is expected: what is said of it meanwhile is kept until it joins.
// Threads: any; Join, and what asks all of them, in the reactor. Of a user: the peer's words by the reader of the
//          socket, the rest in the reactor.
// Units:   nanoseconds.
// Errors:  none of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/mutex.h"
#include "net_socket/engine/link.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/message/health_records.h"

namespace tcpx {

class HealthUser {
 public:
  // The socket has ended for good. OK: the peer's process ended without closing, and what it sent may still be read.
  // Else its host, or the path to it, is gone.
  virtual void PeerLost(const absl::Status& how) = 0;
  // The peer's end of this connection has failed. `parting`: it has given the connection up, which is what this one
  // fails with if it is still needed.
  virtual void PeerFailed(const std::string& cause, bool parting) = 0;
  // The peer's end is closed: what a lane has lost does not come back. `taken`: how much of each lane's stream it had
  // taken by then; empty: it does not say.
  virtual void PeerLeft(const std::vector<uint64_t>& taken) = 0;
  // The receiver says that what it says on this lane is not acknowledged.
  virtual void PeerIsUnheard(int lane) = 0;
  // What the peer waits for, or asks (message/health_records.h).
  virtual void PeerSaysWaits(const std::string& news) = 0;

  // The socket is lost, and there will be another one, or not. True exactly when it is known who the peer is.
  virtual bool HealthLost() = 0;
  // It is back. `counts`: of all whom it serves this one counts it. True as above.
  virtual bool HealthBack(bool counts) = 0;
  // For how long no lane has been up; 0: one is, or the peer has closed. *in_order: lane 0 has ended without a reset.
  virtual int64_t LanesGoneNs(bool* in_order) = 0;
  // True exactly when a lane has an open stream; with `read_out`, and nothing unread, after which an end may come.
  virtual bool AnyLaneUp(bool read_out) = 0;
  // True exactly when the peer's kernel, at least, was heard on a lane within `ns`.
  virtual bool HeardWithin(int64_t ns) = 0;

 protected:
  ~HealthUser() = default;
};

class HealthMembers {
 public:
  void Expect(const ConnectionId& id) {
    MutexLock lock(mutex_);
    members_[id];
  }
  // Hears at once what was said of it before. True: it was expected.
  bool Join(const ConnectionId& id, Link<HealthUser> user);
  void Leave(const ConnectionId& id) {
    MutexLock lock(mutex_);
    members_.erase(id);
  }
  // The peer's process no longer knows this connection, which hears of that once, and of nothing else.
  void Refuse(const ConnectionId& id);
  bool empty() const {
    MutexLock lock(mutex_);
    return members_.empty();
  }

  // What the peer has said of a connection. False: none that has joined.
  bool Deliver(const HealthNotice& notice);
  template <typename Function>
  void TellAll(Function function) {
    for (const Link<HealthUser>& user : Users()) user.With(function);
  }
  // Whether at least one lane heard from the peer's kernel within `ns`.
  bool HeardWithin(int64_t ns) {
    return Any([ns](HealthUser* user) { return user->HeardWithin(ns); });
  }
  bool AnyLaneUp() {
    return Any([](HealthUser* user) { return user->AnyLaneUp(false); });
  }
  // What tells a dialled end whether the peer's process is gone: how long its connections have had no lane, where a
  // lane, or else the health socket (`in_order`), ended with a FIN.
  ProcessEvidence Lanes(bool in_order);

 private:
  struct Member {
    Link<HealthUser> user;              // to nobody exactly while it is expected
    std::vector<HealthNotice> notices;  // what it has missed
  };

  std::vector<Link<HealthUser>> Users();
  template <typename Function>
  bool Any(Function function) {
    const std::vector<Link<HealthUser>> users = Users();
    return std::any_of(users.begin(), users.end(), [&](auto& user) { return user.Ask(false, function); });
  }

  mutable Mutex mutex_;  // never held while a link is used
  absl::flat_hash_map<ConnectionId, Member> members_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx
