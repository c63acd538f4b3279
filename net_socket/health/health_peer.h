// health_peer.h: one per pair of processes and devices, shared by the connections between them: is the peer there?
//
// Purpose: a lane says little about its peer: it may be idle or unread for minutes. The health socket never carries
//          payload, so the kernel's keepalive tells within TCPX_PEER_TIMEOUT whether the peer's host is there. It also
//          carries what must arrive where a lane is stuck: notices of failures, and the bye of a process that leaves.
// States:  the socket's (health_socket.h); README.md says who dials it, and when it is closed. Where both ends heal it
//          is dialled again (docs/healing.md), and what the peer may have missed is said again.
// Threads: InLoop: in the reactor; Poll, Ask and the parts' functions from any.
// Lifetime: shared by its connections. Borrows reactor and hub, which outlive them.
// Units:   nanoseconds.
// Errors:  its own death, where that is final, goes to every connection as PeerLost: an error or a reset, or OK for an
//          end without bye.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/fd.h"
#include "common/log.h"
#include "net_socket/health/health_exchanges.h"
#include "net_socket/health/health_members.h"
#include "net_socket/health/health_redials.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

class HealthHub;

struct HealthSettings {
  int64_t peer_timeout_ns = 0;
  bool heals = false;                // both ends do
  int64_t reconnect_timeout_ns = 0;  // of one that heals, as the next
  int64_t linger_ns = 0;
  bool encrypts = false;  // without seals no socket is used
};

class HealthPeer final : public Reactor::Handler, public std::enable_shared_from_this<HealthPeer> {
 public:
  // `hub`: has all of them. `notes` null: clocks are not measured.
  HealthPeer(HealthHub* hub, Reactor* reactor, uint64_t tag, bool dialled, ClockNotes* notes);

  uint64_t tag() const { return tag_; }
  // The socket is lost, as by the end of the peer's process.
  bool ended_in_order_in_loop() { return socket_.state() == HealthState::kLost && lost_in_order_; }

  // A dial, or an accepted connection, that is to be used by `uses` more. The last one out closes a dialled socket.
  void UseInLoop();
  bool used_in_loop() const { return uses_ > 0; }
  void UnuseInLoop();
  // `seals`: of the socket; empty where it is not encrypted. Where it must be and is not, it is closed, with a WARN.
  void UpInLoop(OwnedFd fd, const HealthSettings& settings, Seals seals = Seals());
  // Its dialler dials it again. What came by the old socket is heard, and that socket is let go. False: what came was
  // not the peer's; that is its end, and reported.
  bool LetGoInLoop();
  // The peer's process is gone, or no longer knows the redialler's connection.
  void RefusedInLoop(const HealthRedialler* redialler);
  // The peer's process is gone, with all its connections. `redialler`: which one found that; null: a lane's dial.
  void GoneInLoop(const HealthRedialler* redialler);
  void CloseInLoop() {
    redials_.HaltInLoop();
    socket_.Close();
  }

  // A connection that will join, or leave: what the peer says of it is kept for it until then.
  void ExpectInLoop(const ConnectionId& id) {
    UseInLoop();
    members_.Expect(id);
  }
  // Hears at once what was said of it before, and that the socket has ended. `redialler`: null where it doesn't heal.
  void JoinInLoop(const ConnectionId& id, Link<HealthUser> user, std::shared_ptr<HealthRedialler> redialler = nullptr);
  void LeaveInLoop(const ConnectionId& id);

  void OnEvents(uint32_t events) override;

  // Hears at once what the peer has said already. For callers that found a lane ended and ask why. Not with a link
  // held. Bytes that are not the peer's are reported soon: they make no other event.
  void Poll();
  // The same, for callers that act on the end of the health socket itself: it is reported soon, event or no event.
  void Ask() {
    Poll();
    socket_.StirAtEnd(false);
  }

  HealthSocket& socket() { return socket_; }
  HealthMembers& members() { return members_; }
  HealthWaiters& waiters() { return waiters_; }
  WaitExchange& waits() { return waits_; }
  HealthRedials& redials_in_loop() { return redials_; }

 private:
  // Hears some of what the peer has said. True: there may be more.
  bool HearSome();
  void EndInLoop();
  void ReportEndInLoop();

  // For sockets that heal: whether the one that ended may come up again.
  bool MayHealInLoop();
  void LostInLoop();
  void AwaitAnotherInLoop();
  void BackInLoop();
  // It does not come back.
  void FailInLoop(const absl::Status& end);
  void RedialInLoop() {
    if (!redials_.DialInLoop(shared_from_this())) FailInLoop(absl::OkStatus());
  }
  // While it is lost: is the peer gone, or too late? How long until the next look.
  int64_t AskInLoop();
  // Whether the network swallows it; the dialling side then dials another one. How long until the next look.
  int64_t LookInLoop();
  // The last one has left, and the peer has to hear that first.
  bool StaysToNotifyInLoop();
  void StopNotifyingInLoop();

  HealthHub* const hub_;
  Reactor* const reactor_;
  const uint64_t tag_;
  const bool dialled_;

  HealthSocket socket_;
  HealthMembers members_;
  WaitExchange waits_;
  HealthClock clock_;

  // In the reactor.
  HealthWaiters waiters_;
  HealthRedials redials_;
  int uses_ = 0;
  HealthSettings settings_;
  std::string peer_;                       // for the log: "from 10.0.0.1:1000"
  std::shared_ptr<HealthPeer> notifying_;  // itself, while it stays to tell something
  int64_t lost_since_ns_ = 0;
  bool lost_in_order_ = false;  // by an end of its stream
  int64_t rtt_ns_ = 0;          // of the latest socket, when it was new
  Reactor::TimerId ask_timer_{0, 0};
  Reactor::TimerId look_timer_{0, 0};
};

}  // namespace tcpx
