// lane_table.h: one end's lanes: the state of each, and what may become of it.
//
// Purpose: whether a lane has a socket, waits for another, or is closed, is known here and nowhere else. Knows no
//          socket, no thread and no clock.
// Threads: any. A look at one lane may be old when the caller has it; each function that moves a lane says whether it
//          did.
// Units:   nanoseconds, as the caller counts them. Errors: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/mutex.h"
#include "net_socket/comm/connection_end.h"
#include "net_socket/stats/counters.h"

namespace tcpx {

enum class LaneState : uint8_t {
  kNone,     // it never had a socket, and may be opened
  kUp,       // it has one
  kMoving,   // the same, and the autopilot wants another for it
  kUnheard,  // the same, and the peer says that what it says on this one does not arrive
  kLost,     // it waits for another one
  kClosed,   // its sender has closed it: it has none, or lets it go, and may be opened again
};
inline constexpr size_t kLaneStates = 6;

// Whether a lane may go from one state (row) to another (column).
inline constexpr bool kLaneMoves[kLaneStates][kLaneStates] = {
    // none, up, moving, unheard, lost, closed
    {false, true, false, false, false, false},  // none
    {false, false, true, true, true, true},     // up
    {false, true, false, true, true, true},     // moving
    {false, false, true, false, true, true},    // unheard
    {false, true, false, false, false, false},  // lost
    {false, true, false, false, false, false},  // closed
};
constexpr bool MayMove(LaneState from, LaneState to) {
  return kLaneMoves[static_cast<size_t>(from)][static_cast<size_t>(to)];
}
// It has a socket that carries, as far as is known.
constexpr bool IsUp(LaneState state) {
  return state == LaneState::kUp || state == LaneState::kMoving || state == LaneState::kUnheard;
}
// It has none, and waits for none.
constexpr bool IsAbsent(LaneState state) { return state == LaneState::kNone || state == LaneState::kClosed; }

class LaneTable {
 public:
  enum class Loss { kRefused, kNoted, kKnown };
  enum class Why { kDied, kLetGo };

  // `have_sockets` by lane.
  LaneTable(Direction direction, const std::vector<bool>& have_sockets);

  LaneState state(int lane) const {
    MutexLock lock(mutex_);
    return at(lane).state;
  }
  bool up(int lane) const { return IsUp(state(lane)); }
  bool lost(int lane) const { return state(lane) == LaneState::kLost; }
  bool absent(int lane) const { return IsAbsent(state(lane)); }
  // It has, or had, a socket: its descriptor and addresses in ConnectionSetup are constant.
  bool made(int lane) const { return state(lane) != LaneState::kNone; }
  int CountMade() const;
  bool AnyLost() const;
  // Since when the lane is lost; 0: it is not.
  int64_t lost_since_ns(int lane) const;
  // Since when no lane has been up; 0: one is.
  int64_t none_since_ns() const {
    MutexLock lock(mutex_);
    return none_since_ns_;
  }
  // What has happened to the lanes so far.
  ConnectionCounts tally() const {
    MutexLock lock(mutex_);
    return tally_;
  }

  // The lane needs another socket: its own died, or is let go. kKnown: it was lost before. kRefused: it gets none.
  Loss Lose(int lane, Why why, int64_t now_ns);
  // It has another one, or its first, or one after it was closed.
  void Back(int lane);
  // Once after each Back: true when that opened the lane, which was not lost before; else it counts as resumed.
  bool TakeOpened(int lane);
  // The sender closes the lane, or the receiver hears that it has. False: not now. A sender never closes its last one.
  // The autopilot opens none again that it was not told is closed (PilotedLanes): by then its socket is gone.
  bool Close(int lane, int64_t now_ns);
  // A lane that is up is to have another socket. False: it is not up.
  bool OrderMove(int lane);
  bool NoteUnheard(int lane);
  // An order to move the lane is void.
  void CancelMove(int lane) { (void)Move(lane, LaneState::kMoving, LaneState::kUp); }

  // Neither of the next two has been called: a lane that is lost gets another socket.
  bool heals() const { return !peer_left() && !ended_.load(std::memory_order_acquire); }
  // The peer has left: nothing comes back. `taken`: how much of each lane's stream it had; empty: it does not say.
  // True: a lane is lost.
  bool PeerLeft(const std::vector<uint64_t>& taken);
  bool peer_left() const { return peer_left_.load(std::memory_order_acquire); }
  std::vector<uint64_t> TakenAtEnd() const {
    MutexLock lock(mutex_);
    return taken_at_end_;
  }
  // This end closes: no lane comes back, and nobody is in WithLanes, nor will be.
  void End() {
    MutexLock lock(mutex_);
    ended_.store(true, std::memory_order_release);
  }
  // Calls it, unless the end has come. False: it has.
  template <typename Function>
  bool WithLanes(Function function) {
    MutexLock lock(mutex_);
    if (ended_.load(std::memory_order_relaxed)) return false;
    function();
    return true;
  }

 private:
  struct Entry {
    LaneState state = LaneState::kNone;
    bool opened = false;  // and nobody has taken that
    int64_t lost_ns = 0;  // when it was lost last
  };

  // True exactly when it was in `from`.
  bool Move(int lane, LaneState from, LaneState to);
  void Leave(Entry* entry, LaneState to, int64_t now_ns) TCPX_REQUIRES(mutex_);
  bool AnyLostLocked() const TCPX_REQUIRES(mutex_);
  Entry& at(int lane) TCPX_REQUIRES(mutex_) { return entries_[static_cast<size_t>(lane)]; }
  const Entry& at(int lane) const TCPX_REQUIRES(mutex_) { return entries_[static_cast<size_t>(lane)]; }

  const Direction direction_;
  std::atomic<bool> peer_left_{false};
  std::atomic<bool> ended_{false};  // written under mutex_
  mutable Mutex mutex_;
  std::vector<Entry> entries_ TCPX_GUARDED_BY(mutex_);  // by lane
  int64_t up_count_ TCPX_GUARDED_BY(mutex_) = 0;
  int64_t none_since_ns_ TCPX_GUARDED_BY(mutex_) = 0;  // 0: a lane is up
  std::vector<uint64_t> taken_at_end_ TCPX_GUARDED_BY(mutex_);
  ConnectionCounts tally_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx
