// connection_failure.h: a connection's failure: the one sticky status, its words, who hears of it, and what later calls
// return.
//
// Purpose: the first error wins. It is written to the log, sent to the peer through the health socket, and spread to
//          the other connections of the communicator (FailureGroup). What tells why the connection has failed is
//          gathered, and judged (verdict.h).
// Reason:  what ends a peer ends its lanes and its health socket within moments of each other, and only the health
//          socket says why. A thread that finds a lane broken waits for nothing: the connection is failing, its lanes
//          keep still, and housekeeping makes it fail once the reason is known, or kReasonNs later.
// Threads: any, while the setup's sockets are open; Refusal and MoveToClosed under the comm's mutex. Nobody waits. What
//          asks the health socket, as a verdict does: not with a mutex held that those who hear it take.
// Lifetime: borrows the setup and the end, which outlive it.
// Errors:  is what they are for. What can't be found out for a line is left out of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "net_socket/comm/connection_end.h"
#include "net_socket/comm/lane_healing.h"
#include "net_socket/engine/link.h"
#include "net_socket/health/verdict.h"
#include "net_socket/message/lane_owner.h"

namespace tcpx {

class FailureGroup;
struct ConnectionSetup;

// In place of a lane's index: the connection as a whole.
inline constexpr int kNoLane = -1;

// What a connection fails with where nothing but the peer's end is known.
inline constexpr char kPeerVanished[] =
    "the peer's process has ended without closing: killed or crashed? Its log or its host's (dmesg, the scheduler) "
    "says more";

// Begins each verdict in a line.
inline constexpr absl::string_view kVerdictMark = "verdict: ";
// "verdict: host-gone: node7 pid 4711: its host is gone, or cut off; " and empty where the cause is not known.
std::string VerdictPrefix(const Verdict& verdict);
// What such a prefix names in a line that came from another rank. kNone: there is none.
Verdict VerdictIn(absl::string_view line);
// Such a prefix for a lane that is moved because the network drops its packets.
std::string HealedVerdict(const LaneHealing& healing, Stuck stuck);

// How the peer is called in verdicts.
std::string PeerName(const ConnectionSetup& setup);
// An interface of a lane of it that is out, or has lost its address; empty: none.
std::string DownInterface(const LaneHealing& healing);

// kQuiet: for what follows from a failure that was reported already. If this end itself ends the connection, it logs
// nothing: kParting gives the peer a reason to report, if it still needs the connection; kSilent resets the connection,
// as an abort does, and what follows from that is quiet here.
enum class Noise { kWarn, kQuiet, kParting, kSilent };

class ConnectionFailure final : public LaneOwner {
 public:
  // `tie`: the connection's own: until it is cut housekeeping asks MayFailInLoop.
  ConnectionFailure(const ConnectionSetup* setup, ConnectionEnd* end, const Tie& tie)
      : setup_(setup), end_(end), self_(tie.To(this)), healing_(setup, tie.To(end)) {}

  // Asks the health socket first why a lane has ended, and where it does not say so yet the connection is failing until
  // it does. Not with a link held.
  void Fail(absl::Status status, int lane, Noise noise = Noise::kWarn);
  void FailLane(absl::Status status, int lane) override { Fail(std::move(status), lane); }
  bool LoseLane(const absl::Status& status, int lane) override { return !failed() && healing_.Lose(status, lane); }
  void LaneBack(int lane) override { healing_.lanes().Back(lane); }
  bool CloseLane(int lane) override { return healing_.lanes().Close(lane, MonotonicNanos()); }
  bool heals() const override { return healing_.heals(); }
  bool peer_left() const override { return healing_.lanes().peer_left(); }
  // Looks at a lane that heals, in the reactor. If none of its sockets moves a byte, that is reported, and in time the
  // connection fails.
  Arbiter::Finding LookAtLane(int lane, int64_t now_ns);
  LaneHealing& healing() { return healing_; }
  const LaneHealing& healing() const { return healing_; }
  // What housekeeping has found, or heard. Where it is failing, that is a reason, and what was found first is reported.
  void FailFound(absl::Status status, int lane);
  // The reason is known, or has not come in time: a connection that is failing now fails.
  void FailInTime();
  // The same of an end that closes: what the health socket has is read first. Not with a link held.
  void FailNow();
  // False: not yet, unless it is `late`; housekeeping asks again. Else FailInTime, where it is failing.
  bool MayFailInLoop(bool late);
  void FailWithPeer(const std::string& cause);
  // The reason to give once a lane is found broken; until then nothing happens.
  void NotePeerParted(const std::string& cause) {
    MutexLock lock(mutex_);
    peer_parted_ = cause;
  }
  void FailWithCommunicator(const std::string& cause);

  // For a connection that has failed: its line in the log, and the verdict in that.
  const std::string& line() const { return line_; }
  const Verdict& verdict() const { return verdict_; }

  // The first failure; OK before.
  absl::Status status() const {
    MutexLock lock(mutex_);
    return status_;
  }
  // True once it has failed and the peer knows, as far as it can.
  bool peer_notified() const { return peer_notified_.load(std::memory_order_acquire); }
  // What a call returns on a connection that is not open: OK while it is failing. Repeats the warning where the
  // communicator wants it.
  absl::Status Refusal();
  void MoveToClosed() { MoveTo(ConnectionState::kClosed); }

  // One line for the log. It names communicator, connection, device, lane, both addresses, the oldest message, round
  // trip, retransmissions and the age of the last acknowledgement.
  std::string Report(absl::string_view what, int lane) const;

 private:
  // What a lane was found to have ended with, while its reason is not known.
  struct Unexplained {
    absl::Status status;
    int lane = kNoLane;
  };

  void WarnOf(const Arbiter::Warning& warning);
  void FailStuck(int lane);
  void AwaitReason(absl::Status status, int lane);
  // With what is known by now.
  void FailKnown(absl::Status status, int lane, Noise noise);
  // `cause` is what others hear; empty: made of the status.
  void FailFor(std::string cause, absl::Status status, int lane, Noise noise);
  // Somebody has said what happened, or nobody needs to.
  bool Explained() const;
  // Empty: it has not.
  std::string PeerParted() const {
    MutexLock lock(mutex_);
    return peer_parted_;
  }
  // True exactly when the communicator fails with this connection. Else *cause becomes its first cause, and *noise
  // quiet.
  static bool JoinFailure(FailureGroup* group, std::string* cause, Noise* noise);

  const ConnectionSetup* const setup_;
  ConnectionEnd* const end_;
  const Link<ConnectionFailure> self_;
  LaneHealing healing_;
  std::atomic<bool> peer_notified_{false};
  mutable Mutex mutex_;
  absl::Status status_ TCPX_GUARDED_BY(mutex_);
  std::optional<Unexplained> unexplained_ TCPX_GUARDED_BY(mutex_);  // the first
  std::string peer_parted_ TCPX_GUARDED_BY(mutex_);
  std::string line_;           // the line of the log; does not change once failed() is true
  Verdict verdict_;            // as line_
  int64_t line_again_ns_ = 0;  // under the comm's mutex
};

}  // namespace tcpx
