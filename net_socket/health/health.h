// health.h: the health sockets: one per pair of processes and devices, shared by the connections between them.
//
// Purpose: a lane says little about its peer: it may be idle or unread for minutes. The health socket never carries
//          payload, so the kernel's keepalive tells within TCPX_PEER_TIMEOUT whether the peer's host is there, also
//          while the peer's process is stopped. It also carries what must arrive where a lane is stuck: the notice that
//          a connection has failed, and why; and the bye of a process that leaves in order.
//
// States:  down -> up (dialled with the first connection to a listening socket, or accepted) -> down. Closed, with a
//          bye, when the last connection has left the dialling side (kHealthMoves).
// Threads: InLoop: in the reactor; Notify, Poll and the identity from any.
// Lifetime: shared by its connections. Borrows reactor and hub, which outlive them.
// Units:   nanoseconds.
// Errors:  its own death goes to every connection: an error or a reset as PeerDied, an end without bye as PeerEnded.
#ifndef TCPX_NET_SOCKET_HEALTH_HEALTH_H_
#define TCPX_NET_SOCKET_HEALTH_HEALTH_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/address.h"
#include "common/fd.h"
#include "common/mutex.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/comm_link.h"
#include "net_socket/message/frame_reader.h"

namespace tcpx {

using ConnectionId = std::array<uint8_t, 16>;
class HealthHub;

// What the peer said on a health socket.
struct HealthNotice {
  ConnectionId connection{};
  std::string cause;
  bool parting = false;         // it has given the connection up; else the connection has failed
  bool left = false;            // it has not failed: its end is closed
  std::vector<uint64_t> taken;  // with left: bytes of each lane's stream, where the peer received
};

// Digests the stream of one health socket. Pure.
class HealthReader {
 public:
  // Takes what has arrived; notices are appended. Not OK when it is garbage.
  absl::Status Take(const char* data, size_t bytes, std::vector<HealthNotice>* notices);
  bool bye() const { return bye_; }

 private:
  FrameReader frames_{"a message on the health socket"};
  bool bye_ = false;
};

enum class HealthState { kDown, kUp, kClosed };
inline constexpr int kHealthStates = 3;

// Whether a health socket may go from one state (row) to another (column).
inline constexpr bool kHealthMoves[kHealthStates][kHealthStates] = {
    // down, up, closed
    {false, true, true},    // down
    {true, false, true},    // up
    {false, false, false},  // closed
};
constexpr bool MayMove(HealthState from, HealthState to) {
  return kHealthMoves[static_cast<int>(from)][static_cast<int>(to)];
}

class Health final : public Reactor::Handler, public std::enable_shared_from_this<Health> {
 public:
  // A dial that needs this socket up.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    // It is this waiter's turn to dial the socket.
    virtual void DialHealthInLoop() = 0;
    virtual void HealthUpInLoop() = 0;
  };

  Health(HealthHub* hub, Reactor* reactor, uint64_t tag, bool dialled)
      : hub_(hub), reactor_(reactor), tag_(tag), dialled_(dialled) {}

  uint64_t tag() const { return tag_; }
  bool up_in_loop();

  // A dial, or an accepted connection, that is to be used by `uses` more. The last one out closes a dialled socket.
  void UseInLoop() { ++uses_; }
  bool used_in_loop() const { return uses_ > 0; }
  void UnuseInLoop();
  // The socket is up at once, or one waiter dials it and the others wait.
  void AwaitInLoop(Waiter* waiter);
  void GiveUpInLoop(Waiter* waiter);
  void UpInLoop(OwnedFd fd, int64_t peer_timeout_ns);
  // Its dialler has dialled it again. What it said on the old socket is heard first.
  void ReplaceInLoop(OwnedFd fd, int64_t peer_timeout_ns);
  void CloseInLoop();

  // A connection that will join, or leave: what the peer says of it is kept for it until then.
  void ExpectInLoop(const ConnectionId& id);
  // Hears at once what was said of it before, and that the socket has ended.
  void JoinInLoop(const ConnectionId& id, std::shared_ptr<CommLink> link);
  void LeaveInLoop(const ConnectionId& id);

  void OnEvents(uint32_t events) override;

  // Tells the peer that its end of this connection has to fail; or, `parting`, why it will, if it goes on. False: there
  // is nobody to tell.
  bool Notify(const ConnectionId& id, const std::string& cause, bool parting = false);
  // Tells the peer that this end of the connection is closed.
  void NotifyLeft(const ConnectionId& id, const std::vector<uint64_t>& taken = {});
  // Hears at once what the peer has said already. For whoever found a lane ended and wonders why. Not with a link held.
  void Poll();
  // The same, for whoever acts on the end of the health socket itself: that is told soon, event or no event.
  void Ask();
  // True exactly when the peer's end was seen and no bye before it.
  bool PeerVanished();

 private:
  struct Member {
    std::shared_ptr<CommLink> link;     // null exactly while it is expected
    std::vector<HealthNotice> notices;  // what it has missed
  };

  // The only one who writes state_.
  void MoveToLocked(HealthState to) TCPX_REQUIRES(mutex_);
  void ReadLocked(std::vector<HealthNotice>* notices) TCPX_REQUIRES(mutex_);
  void SendLocked(const std::string& frame) TCPX_REQUIRES(mutex_);
  void SayLocked(const std::string& frame) TCPX_REQUIRES(mutex_);
  void FlushInLoop();
  void Deliver(const std::vector<HealthNotice>& notices);
  // Null: nobody is to hear it now.
  std::shared_ptr<CommLink> HearerOfLocked(const HealthNotice& notice) TCPX_REQUIRES(mutex_);
  // The socket's end is no news.
  bool OrderlyLocked() TCPX_REQUIRES(mutex_);
  void EndInLoop();

  HealthHub* const hub_;
  Reactor* const reactor_;
  const uint64_t tag_;
  const bool dialled_;

  // In the reactor.
  int uses_ = 0;
  Waiter* dialler_ = nullptr;  // who dials it now
  std::deque<Waiter*> waiters_;

  Mutex mutex_;                                                     // never held while a link is used
  HealthState state_ TCPX_GUARDED_BY(mutex_) = HealthState::kDown;  // changes in the reactor only
  OwnedFd fd_ TCPX_GUARDED_BY(mutex_);                              // valid exactly while up
  HealthReader reader_ TCPX_GUARDED_BY(mutex_);
  std::string outbox_ TCPX_GUARDED_BY(mutex_);
  bool said_left_ TCPX_GUARDED_BY(mutex_) = false;           // on the latest socket
  std::optional<absl::Status> end_ TCPX_GUARDED_BY(mutex_);  // of the latest socket, once seen; OK: an end of file
  absl::flat_hash_map<ConnectionId, Member> members_ TCPX_GUARDED_BY(mutex_);
};

// All health sockets of the process.
class HealthHub {
 public:
  explicit HealthHub(Reactor* reactor) : reactor_(reactor) {}

  // What `device` and the listening socket at `peer` share; made, and not up, where there is none. Used once more.
  std::shared_ptr<Health> UseDialledInLoop(int device, const SocketAddress& peer);
  // Null where the peer has not dialled it (yet).
  std::shared_ptr<Health> FindAcceptedInLoop(uint64_t tag);
  // One of which the end has come is forgotten at once, before its event.
  void LookInLoop(uint64_t tag);
  void AcceptInLoop(uint64_t tag, OwnedFd fd, int64_t peer_timeout_ns);
  void ForgetInLoop(Health* health);
  // Closes an accepted socket that no connection uses; null is a no-op.
  void DropUnusedInLoop(const std::shared_ptr<Health>& health);
  // Says bye on every socket and closes it.
  void CloseInLoop();

 private:
  using Key = std::pair<int, std::string>;

  Reactor* const reactor_;
  absl::flat_hash_map<Key, std::shared_ptr<Health>> dialled_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Health>> accepted_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_HEALTH_HEALTH_H_
