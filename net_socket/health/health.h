// health.h: the health sockets: one per pair of processes and devices, shared by the connections between them.
//
// Purpose: a lane says little about its peer: it may be idle or unread for minutes. The health socket never carries
//          payload, so the kernel's keepalive tells within TCPX_PEER_TIMEOUT whether the peer's host is there, also
//          while the peer's process is stopped. It also carries what must arrive where a lane is stuck: the notice that
//          a connection has failed, and why; and the bye of a process that leaves in order.
//
// States:  down -> up (dialled with the first connection to a listening socket, or accepted) -> down. Closed, with a
//          bye, when the last connection has left the dialling side (kHealthMoves). Where both ends heal: up -> lost
//          -> up, by the hand of the dialling side (docs/healing.md); what the peer may have missed is told again.
// Threads: InLoop: in the reactor; Notify, Poll and the identity from any.
// Lifetime: shared by its connections. Borrows reactor and hub, which outlive them.
// Units:   nanoseconds.
// Errors:  its own death, where that is final, goes to every connection: an error or a reset as PeerDied, an end
//          without bye as PeerEnded.
#ifndef TCPX_NET_SOCKET_HEALTH_HEALTH_H_
#define TCPX_NET_SOCKET_HEALTH_HEALTH_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/fd.h"
#include "common/mutex.h"
#include "net_socket/engine/link.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/clock_exchange.h"
#include "net_socket/health/health_reader.h"
#include "net_socket/health/health_user.h"
#include "net_socket/health/lane_silence.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

class ClockNotes;
class Health;
class HealthHub;

// kLost: it is to be up again.
enum class HealthState { kDown, kUp, kLost, kClosed };
inline constexpr int kHealthStates = 4;

// Whether a health socket may go from one state (row) to another (column).
inline constexpr bool kHealthMoves[kHealthStates][kHealthStates] = {
    // down, up, lost, closed
    {false, true, false, true},    // down
    {true, false, true, true},     // up
    {true, true, false, true},     // lost
    {false, false, false, false},  // closed
};
constexpr bool MayMove(HealthState from, HealthState to) {
  return kHealthMoves[static_cast<int>(from)][static_cast<int>(to)];
}

struct HealthSettings {
  int64_t peer_timeout_ns = 0;
  bool heals = false;                // both ends do
  int64_t reconnect_timeout_ns = 0;  // of one that heals, as the next
  int64_t linger_ns = 0;
  bool encrypts = false;  // without seals no socket is used
};

// Dials a health socket again, in the name of one connection. In the reactor.
class HealthRedialler {
 public:
  virtual ~HealthRedialler() = default;
  // Dials until it ends in UpInLoop, RefusedInLoop or GoneInLoop of Health, or in HaltInLoop. Nothing where it dials already.
  virtual void DialInLoop(std::shared_ptr<Health> health) = 0;
  virtual void HaltInLoop() = 0;
};

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
  bool dialled() const { return dialled_; }
  bool up_in_loop() { return state_in_loop() == HealthState::kUp; }
  HealthState state_in_loop();
  bool heals_in_loop() const { return settings_.heals; }
  // One that is lost, as by the end of the peer's process.
  bool ended_in_order_in_loop() { return state_in_loop() == HealthState::kLost && lost_in_order_; }

  // A dial, or an accepted connection, that is to be used by `uses` more. The last one out closes a dialled socket.
  void UseInLoop() { ++uses_; }
  bool used_in_loop() const { return uses_ > 0; }
  void UnuseInLoop();
  // The socket is up at once, or one waiter dials it and the others wait.
  void AwaitInLoop(Waiter* waiter);
  void GiveUpInLoop(Waiter* waiter);
  // `seals`: of the socket; empty where it is not encrypted. Where it must be and is not, it is closed, with a WARN.
  void UpInLoop(OwnedFd fd, const HealthSettings& settings, Seals seals = Seals());
  // Its dialler dials it again. What came by the old socket is heard, and that socket is let go. False: what came was not
  // the peer's; that is its end, and told.
  bool LetGoInLoop();
  // The peer's process is gone, or knows the redialler's connection no more.
  void RefusedInLoop(const HealthRedialler* redialler);
  // The peer's process is gone, with all its connections.
  void GoneInLoop(const HealthRedialler* redialler);
  void CloseInLoop();

  // A connection that will join, or leave: what the peer says of it is kept for it until then.
  void ExpectInLoop(const ConnectionId& id);
  // Hears at once what was said of it before, and that the socket has ended. `redialler`: null where it doesn't heal.
  void JoinInLoop(const ConnectionId& id, Link<HealthUser> link, std::shared_ptr<HealthRedialler> redialler = nullptr);
  void LeaveInLoop(const ConnectionId& id);

  void OnEvents(uint32_t events) override;

  // Tells the peer that its end of this connection has to fail; or, `parting`, why it will, if it goes on. False: there
  // is nobody to tell, or not now: a socket that is lost tells it later.
  bool Notify(const ConnectionId& id, const std::string& cause, bool parting = false);
  // Tells the peer that this end of the connection is closed.
  void NotifyLeft(const ConnectionId& id, const std::vector<uint64_t>& taken = {});
  // Asks the peer, who dials, to try a second socket beside this lane. False: the health socket is lost itself.
  bool AskForAnother(const ConnectionId& id, int lane);
  // Tells the peer what this end waits for (wait_news.h). Where it can't be told now it is of no use later: false.
  bool TellWaits(const ConnectionId& id, const std::string& news);
  // When the peer's process last said anything, of any connection; 0: never.
  int64_t heard_ns() const { return heard_ns_.load(std::memory_order_relaxed); }
  // The peer's process, as it calls itself; empty: it is of a build that neither says so nor answers.
  std::string peer_name();
  // What the kernel knows of the socket, and both its addresses unless `hosts` is null; false: it is not up.
  bool ReadTcp(LaneTcpInfo* info, std::string* hosts = nullptr);
  // Hears at once what the peer has said already. For whoever found a lane ended and wonders why. Not with a link held.
  // Bytes that are not the peer's are told soon: they make no other event.
  void Poll();
  // The same, for whoever acts on the end of the health socket itself: that is told soon, event or no event.
  void Ask();
  // True exactly when the peer's end was seen, no bye before it, and no other socket is expected.
  bool PeerVanished();
  // The same of a reset: by a process that ended with something unread, or by somebody on the way.
  bool WasReset();

 private:
  struct Member {
    Link<HealthUser> link;              // to nobody exactly while it is expected
    std::vector<HealthNotice> notices;  // what it has missed
    std::shared_ptr<HealthRedialler> redialler;
  };
  // What the peer may not have heard.
  struct Said {
    uint64_t end = 0;  // position behind it in the stream of the socket at hand
    std::string frame;
  };

  bool GarbledLocked() TCPX_REQUIRES(mutex_);
  // Has the reactor see the end of the socket, event or no event.
  void TellEndSoon();
  // The only one who writes state_.
  void MoveToLocked(HealthState to) TCPX_REQUIRES(mutex_);
  // Some of what is there. True: there may be more.
  bool ReadLocked(std::vector<HealthNotice>* notices) TCPX_REQUIRES(mutex_);
  absl::Status TakeLocked(const char* data, size_t bytes, std::vector<HealthNotice>* notices) TCPX_REQUIRES(mutex_);
  // Of what the socket holds without an acknowledgement; below 0: not known.
  int64_t UnackedLocked() TCPX_REQUIRES(mutex_);
  // Hears some of what the peer has said. True: there may be more.
  bool HearSome();
  void SendLocked(const std::string& frame) TCPX_REQUIRES(mutex_);
  // A socket that can't be sealed any more ends, and its connections with it.
  void CheckSealerLocked() TCPX_REQUIRES(mutex_);
  // And has the reactor send what the socket does not take at once.
  void SendNowLocked(const std::string& frame) TCPX_REQUIRES(mutex_);
  // What is said now is told, now or later.
  bool TellsLocked() TCPX_REQUIRES(mutex_);
  void SayLocked(const std::string& frame) TCPX_REQUIRES(mutex_);
  void FlushInLoop();
  void Deliver(const std::vector<HealthNotice>& notices);
  // To nobody: it is to be heard by none now.
  Link<HealthUser> HearerOfLocked(const HealthNotice& notice) TCPX_REQUIRES(mutex_);
  // Says who this process is, the dialler first, and learns who the peer is (health_waits.cc).
  void IntroduceLocked() TCPX_REQUIRES(mutex_);
  void HearWaitsLocked(const HealthNotice& notice) TCPX_REQUIRES(mutex_);
  void AnswerForNobodyLocked(const ConnectionId& id) TCPX_REQUIRES(mutex_);
  // Measures how far the peer's clock is from ours, where a timeline is written (health_clock.cc).
  void BeginClockInLoop();
  void AskClockInLoop(int64_t again_ns);
  void HearClock(const std::string& text);
  void SayClockLocked(const ClockRecord& record) TCPX_REQUIRES(mutex_);
  // The socket's end is no news.
  bool OrderlyLocked() TCPX_REQUIRES(mutex_);
  void EndInLoop();
  // From up to down or lost.
  void DropSocketLocked(HealthState to) TCPX_REQUIRES(mutex_);
  void TellEndInLoop();
  void TellLinks(const absl::Status& end);
  std::vector<Link<HealthUser>> Links();

  // Of one that heals (health_healing.cc).
  // Whether what ended may be up again.
  bool MayHealInLoop();
  void LostInLoop();
  void AwaitAnotherInLoop();
  void BackInLoop();
  // It does not come back.
  void FailInLoop(const absl::Status& end);
  void RedialInLoop();
  // While it is lost: is the peer gone, or too late?
  void AskSoonInLoop(int64_t after_ns);
  void AskInLoop();
  bool PeerGoneInLoop(int64_t lost_ns);
  // What it was lost with, if by a silence of the whole timeout; else OK.
  absl::Status SilenceInLoop();
  bool HeardWithinInLoop(int64_t ns);
  // Whether the network swallows it, four times a second; the dialling side then dials beside it.
  void LookSoonInLoop();
  void LookInLoop();
  // The last one has left, and the peer has to hear that first.
  bool StaysToTellInLoop();
  void StopTellingInLoop();
  void HaltRedialler();
  void ForgetHeardLocked() TCPX_REQUIRES(mutex_);
  void TellAgainLocked() TCPX_REQUIRES(mutex_);

  HealthHub* const hub_;
  Reactor* const reactor_;
  const uint64_t tag_;
  const bool dialled_;

  // In the reactor.
  int uses_ = 0;
  Waiter* dialler_ = nullptr;  // who dials it now
  std::deque<Waiter*> waiters_;
  HealthSettings settings_;
  std::string peer_;                             // for the log
  std::shared_ptr<HealthRedialler> redialling_;  // who dials it again just now
  std::shared_ptr<HealthRedialler> last_to_leave_;
  std::shared_ptr<Health> telling_;  // itself, while it stays to tell something
  int64_t lost_since_ns_ = 0;
  bool lost_in_order_ = false;  // by an end of its stream
  LaneSilence silence_;
  Reactor::TimerId ask_timer_{0, 0};
  Reactor::TimerId look_timer_{0, 0};
  Reactor::TimerId clock_timer_{0, 0};

  std::atomic<int64_t> heard_ns_{0};
  Mutex mutex_;                                                     // never held while a link is used
  HealthState state_ TCPX_GUARDED_BY(mutex_) = HealthState::kDown;  // changes in the reactor only
  OwnedFd fd_ TCPX_GUARDED_BY(mutex_);                              // valid exactly while up
  Seals seals_ TCPX_GUARDED_BY(mutex_);                             // of fd_
  HealthReader reader_ TCPX_GUARDED_BY(mutex_);
  std::string peer_name_ TCPX_GUARDED_BY(mutex_);
  ClockExchange clock_ TCPX_GUARDED_BY(mutex_);
  std::string outbox_ TCPX_GUARDED_BY(mutex_);
  bool said_left_ TCPX_GUARDED_BY(mutex_) = false;           // or waits, or the time, on the latest socket
  std::optional<absl::Status> end_ TCPX_GUARDED_BY(mutex_);  // of the latest socket, once seen; OK: an end of file
  int end_errno_ TCPX_GUARDED_BY(mutex_) = 0;                // with it; -1: garbage, or a broken cipher
  bool heals_ TCPX_GUARDED_BY(mutex_) = false;
  bool encrypts_ TCPX_GUARDED_BY(mutex_) = false;
  uint64_t sent_bytes_ TCPX_GUARDED_BY(mutex_) = 0;  // that the socket at hand took
  std::deque<Said> said_ TCPX_GUARDED_BY(mutex_);    // of one that heals
  absl::flat_hash_map<ConnectionId, Member> members_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_HEALTH_HEALTH_H_
