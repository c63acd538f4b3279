// arbiter.h: decides whether a peer's process, a lane's socket or a connection is gone. Pure.
//
// Purpose: takes all of these decisions in one place, from what other classes have observed. Two rules. Nothing is
//          final while anything of the peer's process is heard. A stream that has work but moves no byte for
//          TCPX_PEER_TIMEOUT is an error, however many sockets it gets, unless the peer itself waits: its window is
//          shut, and it answers probes.
// Threads: one at a time. Units: bytes; nanoseconds of MonotonicNanos. Errors: none. Source of constants: tuning.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"

namespace tcpx {

// What is known of a process that may be gone.
struct ProcessEvidence {
  bool up = false;          // one of its sockets is up, in any connection
  bool in_order = false;    // a lost socket ended with a FIN, as the sockets of an ending process do
  int64_t lost_ns = 0;      // how long it has had no socket
  int64_t refused_ns = -1;  // how long its port has only refused; negative: nobody dials it
  int64_t rtt_ns = 0;       // round trip of the path to it
};
bool IsGone(const ProcessEvidence& process);

// Why a lane's sockets, one after the other, have moved no byte.
enum class Stuck : uint8_t { kNone, kSilent, kReset };

// The lanes of one end of a connection.
class Arbiter {
 public:
  enum class Loss { kDied, kSilent, kOther };
  // kSuspect: another socket may be tried. kStuck: no socket has moved a byte for too long: an error.
  enum class Finding { kFine, kSuspect, kStuck };

  // `silence_ns`: TCPX_PEER_TIMEOUT. `alone_ns`: TCPX_RECONNECT_TIMEOUT; at the dialled end plus kDiallerGivesUpNs.
  Arbiter(int lanes, int64_t silence_ns, int64_t alone_ns)
      : silence_ns_(silence_ns), alone_ns_(alone_ns), lanes_(static_cast<size_t>(lanes)) {}

  // The lane has lost its socket.
  void Lost(int lane, Loss how);
  // Call before Lost, with the old socket's TCP_INFO. A lane that holds nothing has no work.
  void Acked(int lane, const LaneTcpInfo& info, int64_t now_ns);
  // What is known of a stream when its lane gets a socket.
  struct Stream {
    uint64_t position = 0;                         // how many of its bytes have been taken
    bool owes = false;                             // this end must send some bytes again
    std::optional<uint64_t> acked = std::nullopt;  // bytes acknowledged on the new socket (its hello); nullopt: unknown
  };
  // The lane has a new socket.
  void Back(int lane, const Stream& stream, int64_t now_ns);
  // Call four times a second while the lane has a socket.
  Finding Look(int lane, const LaneTcpInfo& info, int64_t now_ns);
  // The same while the lane waits for a new socket. `alone`: no lane is up.
  Finding LookAtLost(int lane, bool alone, int64_t now_ns);
  // Call before LookAtLost. `since_ns`: since when requests that only this lane can move have made no progress; 0:
  // there are none, or they move.
  void Awaited(int lane, int64_t since_ns) { at(lane).awaited_ns = since_ns; }
  // When the peer last said that it has posted nothing: requests count as waiting only from then on. 0: it has not said
  // so.
  void PeerWaited(int64_t at_ns) { peer_waited_ns_ = at_ns; }
  // Call instead of Look if the lane's socket holds nothing.
  void LookAtIdle(int lane, int64_t now_ns);
  // Call several times within TCPX_PEER_TIMEOUT. True: nobody answers on the lane's socket.
  bool Dead(int lane, const LaneTcpInfo& info, int64_t now_ns) {
    return at(lane).liveness.Dead(info, now_ns, silence_ns_);
  }
  // From now on the longest pause between two of the kernel's probes of the lane's window; 0: as before.
  int64_t ProbeNs(int lane, const LaneTcpInfo& info) {
    const bool shut = info.window_closed();
    if (std::exchange(at(lane).probed, shut) == shut) return 0;
    return shut ? tuning::kProbeNs : tuning::kProbeFreelyNs;
  }
  // Call if the lane's socket holds nothing, or the lane has none: Dead starts again.
  void ForgetLife(int lane) { at(lane).liveness.Forget(); }
  // Whether the lane is still suspected now.
  bool Suspects(int lane, const LaneTcpInfo& info, int64_t now_ns) { return at(lane).silence.Suspects(info, now_ns); }
  // Because of silence a new socket was requested, or has taken over.
  void Moved(int lane, int64_t now_ns) { at(lane).silence.Moved(now_ns); }

  // For a lost lane's first dial. 0: dial now (the dial counts). Else the time at which to ask again; no place in a
  // queue is kept.
  int64_t TakeFirstDial(int lane, int64_t now_ns);
  // The same for a later dial. `first`: it is the lane's first on another path since the loss.
  int64_t TakeDialTurn(int lane, bool first, int64_t now_ns);
  // The lane's socket ended with a FIN, as the sockets of an ending process do.
  void Ended(int lane) { at(lane).ended = true; }
  // A dial was refused. True: the process is gone. `up`: one of its sockets is up. `in_order`: another lost socket
  // ended with a FIN.
  bool Refused(bool up, bool in_order, int64_t now_ns);
  // A dial ended, but was not refused.
  void NotRefused() { refused_since_ns_ = 0; }
  // The peer's kernel has accepted a connection. If its process does not answer, it is stopped or busy, not gone.
  void Reached(int64_t now_ns) { reached_ns_ = now_ns; }
  // True: no lane has been up since `none_since_ns` (0: one is up), and that is too long.
  bool Overdue(int64_t none_since_ns, int64_t now_ns) const {
    return none_since_ns != 0 && now_ns - none_since_ns >= alone_ns_;
  }

  // Whether a line about the lane's sockets may be logged now: the first lines at once, then one a second.
  bool MayLog(int lane, int64_t now_ns);
  // How many lines were suppressed since the last call.
  int TakeUnlogged() { return std::exchange(unlogged_, 0); }
  // A lane that needs a WARN.
  struct Warning {
    int lane = -1;       // none
    bool lost = false;   // it gets no new socket
    bool waits = false;  // it has work
  };
  // Returns a lane that has moved no byte on any socket for long, or gets no socket: once, and again only after all
  // lanes were fine.
  Warning Warns(int64_t now_ns);
  Stuck stuck(int lane) const {
    if (std::max(at(lane).still, at(lane).stuck) < tuning::kStuckMin) return Stuck::kNone;
    return at(lane).loss == Loss::kSilent ? Stuck::kSilent : Stuck::kReset;
  }
  // For the lane that has moved nothing for longest.
  Stuck stuck() const;
  // True: a lane with work has a new socket, or waits for one, and nothing has moved on it yet. Its fault will be known
  // in a moment.
  bool Unsettled(int64_t now_ns) const;
  // How many sockets in a row have moved no byte, though they had work.
  int stuck_sockets(int lane) const { return at(lane).stuck; }

 private:
  struct Lane {
    // It has moved a byte.
    void Progress(int64_t now_ns) {
      stuck = still = sockets = 0;
      fresh = false;
      stuck_ns = now_ns;
      silence.Carried();
    }
    // Nobody looks at an end that does nothing: what was known before that is not of now.
    void See(int64_t now_ns) {
      if (now_ns - seen_ns > tuning::kNotLookedNs) stuck_ns = 0;
      seen_ns = now_ns;
    }

    LaneSilence silence;
    LaneLiveness liveness;
    uint64_t position = 0;          // at the latest Back
    std::optional<uint64_t> acked;  // by the socket at hand; nullopt: not known
    bool looked = false;            // Look has seen the socket
    int idle_looks = 0;             // LookAtIdle calls in a row
    int64_t seen_ns = 0;            // the latest look at the lane
    int64_t stuck_ns = 0;           // since when it has had work, and moved nothing; 0: not
    bool probed = false;            // its window is probed often
    bool counts = true;             // the next Back is one after a loss, here or at the peer
    Loss loss = Loss::kOther;
    int still = 0;           // sockets in a row that moved nothing, soon after each other
    int stuck = 0;           // of these, sockets that had work
    int sockets = 0;         // sockets with work since the lane last moved a byte, however the earlier ones ended
    bool ended = false;      // its socket ended with a FIN
    bool fresh = false;      // nothing was seen to move on its socket yet, or it has none
    int64_t still_ns = 0;    // since when `still` counts
    int64_t back_ns = 0;     // the latest Back
    int64_t lost_ns = 0;     // the first look since it was lost; 0: it is not
    int64_t awaited_ns = 0;  // as Awaited says
    int64_t dialled_ns = 0;
  };

  Lane& at(int lane) { return lanes_[static_cast<size_t>(lane)]; }
  const Lane& at(int lane) const { return lanes_[static_cast<size_t>(lane)]; }
  // Since when a lane that is lost has been needed; now: it is not.
  int64_t AwaitedNs(const Lane& lane, int64_t now_ns) const {
    return lane.awaited_ns == 0 ? now_ns : std::max({lane.awaited_ns, lane.lost_ns, peer_waited_ns_});
  }
  // A lane went on a short while ago: a peer that answers is neither away nor stopped.
  bool Answers(int64_t now_ns) const {
    return answered_ns_ != 0 && now_ns - answered_ns_ < std::min(silence_ns_, tuning::kReachedNs);
  }
  // The peer's kernel accepts connections, and its process answers none.
  bool IsStopped(int64_t now_ns) const {
    return reached_ns_ != 0 && now_ns - reached_ns_ < silence_ns_ + tuning::kReachedNs && !Answers(now_ns);
  }
  Warning WarningOf(int lane, int64_t now_ns) const;

  const int64_t silence_ns_;
  const int64_t alone_ns_;
  std::vector<Lane> lanes_;
  int64_t refused_since_ns_ = 0;  // the first refusal of the port in a row, none long after the one before; 0: none
  int64_t refused_ns_ = 0;        // the latest
  int64_t peer_waited_ns_ = 0;
  int64_t reached_ns_ = 0;   // the latest Reached; 0: none
  int64_t answered_ns_ = 0;  // the latest Back; 0: none
  int64_t turn_ns_ = 0;      // the latest dial that took a turn
  int64_t logged_ns_ = 0;    // the latest line of a lane whose sockets move nothing
  int64_t lines_ns_ = 0;     // up to now, less the lines that may come at once
  int unlogged_ = 0;
  bool warned_ = false;
};

}  // namespace tcpx
