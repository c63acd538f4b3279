// arbiter.h: decides what is gone: a peer's process, a lane's socket, a connection. Pure.
//
// Purpose: one place decides, from what others have seen. Two rules: nothing is final while something of that process
//          is heard; and a stream that has work and moves no byte for TCPX_PEER_TIMEOUT is an error, however many
//          sockets it gets, unless the peer waits itself: its window is shut, and it answers.
// Threads: one at a time. Units: bytes; nanoseconds of MonotonicNanos. Errors: none. Source of constants: tuning.h.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "net_socket/health/lane_liveness.h"

namespace tcpx {

// What is known of a process that may be gone.
struct ProcessEvidence {
  bool up = false;          // a socket of it is up, of any of its connections
  bool in_order = false;    // one that was lost has ended in order, as those of a process that ends
  int64_t lost_ns = 0;      // it has had no socket for so long
  int64_t refused_ns = -1;  // its port has refused, and nothing else came, for so long; negative: nobody dials it
  int64_t rtt_ns = 0;       // of the path to it
};
bool IsGone(const ProcessEvidence& process);

// Refusals by a port in a row.
class Refusals {
 public:
  // Counts one more. Returns for how long there was nothing else; a refusal long after the one before begins anew.
  int64_t ForNs(int64_t now_ns);
  // Something else has come.
  void Forget() { since_ns_ = 0; }

 private:
  int64_t since_ns_ = 0;  // 0: none
  int64_t latest_ns_ = 0;
};

// What sockets in a row that move no byte have in common.
enum class Vain : uint8_t { kNone, kSilent, kReset };

// The lanes of one end of a connection.
class Arbiter {
 public:
  enum class Loss { kDied, kSilent, kOther };
  // kSuspect: another socket may be tried. kVain: no socket moves a byte.
  enum class Finding { kFine, kSuspect, kVain };
  enum class Probing { kAsIs, kOften, kFreely };

  // `silence_ns`: TCPX_PEER_TIMEOUT. `alone_ns`: TCPX_RECONNECT_TIMEOUT, and what this end waits longer.
  Arbiter(int lanes, int64_t silence_ns, int64_t alone_ns);

  // The lane has lost its socket.
  void Lost(int lane, Loss how);
  // Before that: how much was acknowledged on it, and what it holds. One that holds nothing has no work.
  void Acked(int lane, const LaneTcpInfo& info, int64_t now_ns);
  // What is known of a stream when its lane gets a socket.
  struct Stream {
    uint64_t position = 0;                         // of what has been taken of it
    bool owes = false;                             // this end has sent something that is to be sent again
    std::optional<uint64_t> acked = std::nullopt;  // by the new socket so far: its hello; nullopt: not known
  };
  // The lane has another socket.
  void Back(int lane, const Stream& stream, int64_t now_ns);
  // Four times a second: the lane's socket.
  Finding Look(int lane, const LaneTcpInfo& info, int64_t now_ns);
  // The same for a lane that waits for another socket. `alone`: no lane is up.
  Finding LookAtLost(int lane, bool alone, int64_t now_ns);
  // Before each such look: requests that no other lane can move make no progress since then; 0: there are none, or they
  // do.
  void Awaited(int lane, int64_t since_ns) { at(lane).awaited_ns = since_ns; }
  // The peer said then that it has posted nothing: what is awaited is so since then. 0: it has not.
  void PeerWaited(int64_t at_ns) { peer_waited_ns_ = at_ns; }
  // The lane's socket holds nothing.
  void LookAtIdle(int lane, int64_t now_ns);
  // Some times within TCPX_PEER_TIMEOUT: true when nobody answers on the lane's socket.
  bool Dead(int lane, const LaneTcpInfo& info, int64_t now_ns) {
    return at(lane).liveness.Dead(info, now_ns, silence_ns_);
  }
  // How often the kernel is to probe the lane's window from now on.
  Probing Probes(int lane, const LaneTcpInfo& info);
  // The lane's socket holds nothing, or there is none.
  void ForgetLife(int lane) { at(lane).liveness.Forget(); }
  // Whether the lane is still suspected now.
  bool Suspects(int lane, const LaneTcpInfo& info, int64_t now_ns) { return at(lane).silence.Suspects(info, now_ns); }
  // The same of one that is probed while it holds nothing, as a health socket is (keepalive).
  bool SuspectsProbed(int lane, const LaneTcpInfo& info, int64_t now_ns);
  // Another socket was asked for, or has taken over, because of silence.
  void Moved(int lane, int64_t now_ns) { at(lane).silence.Moved(now_ns); }

  // 0: the lane, which was lost, may be dialled now, and is. Else when to ask again: nothing is kept for who asks.
  int64_t TakeFirstDial(int lane, int64_t now_ns);
  // The same of a dial that follows. `first`: the lane's first by another path since it was lost.
  int64_t TakeDialTurn(int lane, bool first, int64_t now_ns);
  // The lane's socket has ended in order, as those of a process that ends.
  void Ended(int lane) { at(lane).ended = true; }
  // A dial was refused. True: the process is gone. `up`: a socket of it is up. `in_order`: another that was lost has
  // ended in order.
  bool Refused(bool up, bool in_order, int64_t now_ns);
  // A dial has ended otherwise.
  void NotRefused() { refusals_.Forget(); }
  // The peer's kernel has taken a socket: where its process does not answer, it is stopped or busy, not gone.
  void Reached(int64_t now_ns) { reached_ns_ = now_ns; }
  // No lane has been up since then (0: one is), for too long.
  bool Overdue(int64_t none_since_ns, int64_t now_ns) const {
    return none_since_ns != 0 && now_ns - none_since_ns >= alone_ns_;
  }

  // Whether the log may have a line about the lane's sockets now: some lines at once, and then one a second.
  bool MayTell(int lane, int64_t now_ns);
  // How many lines were left out since the latest call.
  int TakeUntold() { return std::exchange(untold_, 0); }
  // The lane that a WARN is due for.
  struct Warning {
    int lane = -1;       // none
    bool lost = false;   // it finds no other socket
    bool waits = false;  // it has something to move
  };
  // Once for each stretch of time in which a lane has moved no byte by any socket for long, or has found none.
  Warning Warns(int64_t now_ns);
  Vain vain(int lane) const;
  // For the lane that has moved nothing for longest.
  Vain vain() const;
  // A lane with something to move has another socket, or waits for it, and nothing has moved on it yet: what is wrong
  // with it will be known in a moment.
  bool Unsettled(int64_t now_ns) const;
  // How many sockets in a row, and since when.
  int vain_sockets(int lane) const { return at(lane).vain; }

 private:
  struct Lane {
    LaneSilence silence;
    LaneLiveness liveness;
    uint64_t position = 0;          // at the latest Back
    std::optional<uint64_t> acked;  // by the socket at hand; nullopt: not known
    bool looked = false;            // at it
    int idle_looks = 0;             // in a row, at it
    int64_t seen_ns = 0;            // the latest look at the lane
    int64_t stuck_ns = 0;           // since when it has had work, and moved nothing; 0: not
    bool probed = false;            // its window is probed often
    bool counts = true;             // the next Back is one after a loss, here or at the peer
    Loss loss = Loss::kOther;
    int still = 0;           // sockets in a row that moved nothing, soon after each other
    int vain = 0;            // the same, of those that had something to move
    int sockets = 0;         // with something to move since it moved last, however the ones before ended
    bool ended = false;      // its socket, in order
    bool fresh = false;      // nothing was seen to move on its socket yet, or it has none
    int64_t still_ns = 0;    // since when `still` counts
    int64_t back_ns = 0;     // the latest Back
    int64_t lost_ns = 0;     // the first look since it was lost; 0: it is not
    int64_t awaited_ns = 0;  // as Awaited says
    int64_t dialled_ns = 0;
  };

  Lane& at(int lane) { return lanes_[static_cast<size_t>(lane)]; }
  const Lane& at(int lane) const { return lanes_[static_cast<size_t>(lane)]; }
  static void Progress(Lane* lane, int64_t now_ns);
  static void See(Lane* lane, int64_t now_ns);
  // Since when a lane that is lost has been needed; now: it is not.
  int64_t AwaitedNs(const Lane& lane, int64_t now_ns) const;
  Warning WarningOf(int lane, int64_t now_ns) const;

  const int64_t silence_ns_;
  const int64_t alone_ns_;
  std::vector<Lane> lanes_;
  Refusals refusals_;
  int64_t peer_waited_ns_ = 0;
  int64_t reached_ns_ = 0;   // by a dial; 0: not yet
  int64_t answered_ns_ = 0;  // the latest Back of a lane
  int64_t turn_ns_ = 0;      // the latest dial that took a turn
  int64_t told_ns_ = 0;      // the latest line of a lane whose sockets move nothing
  int64_t lines_ns_ = 0;     // up to now, less the lines that may come at once
  int untold_ = 0;
  bool warned_ = false;
};

}  // namespace tcpx
