// lane_healing.h: which lanes of a connection have a socket, and whether those that lost it still get another one.
//
// Purpose: a thread that moves a lane, or watches it, reports its loss here; the first report of each is logged, shown
//          to the peer, and passed to the connection in the reactor, which there dials again (the sender) or waits for
//          that (the receiver). It ends for good when the peer has left or this end is closed.
// Threads: any. Lifetime: borrows the setup. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "net_socket/comm/connection_end.h"
#include "net_socket/comm/lane_table.h"
#include "net_socket/engine/link.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/stats/counters.h"

namespace tcpx {

struct ConnectionSetup;

class LaneHealing {
 public:
  // Where the setup does not heal, no lane gets another socket.
  LaneHealing(const ConnectionSetup* setup, Link<ConnectionEnd> end);

  const ConnectionSetup& setup() const { return *setup_; }
  LaneTable& lanes() { return lanes_; }
  const LaneTable& lanes() const { return lanes_; }

  // Asks, or informs, the arbiter, which decides what is gone. From any thread.
  template <typename Function>
  auto Judge(Function function) {
    MutexLock lock(arbiter_mutex_);
    return function(&arbiter_);
  }
  // The socket of `lane` has broken. True: it gets another one. Not with a link held.
  bool Lose(const absl::Status& why, int lane);
  // `lane` is to get another one although it is up. False: it gets none.
  bool LetGo(const absl::Status& why, int lane, Arbiter::Loss how = Arbiter::Loss::kOther) {
    return Note(why, lane, how) != LaneTable::Loss::kRefused;
  }
  // A lane has another socket: as Arbiter::Back.
  void NoteSocket(int lane, uint64_t position, bool owes);
  // A look at what a lane with a place holds, or waits for.
  Arbiter::Finding LookAt(int lane, int64_t now_ns);
  // Whether its line may go to the log just now. *more: what to add to it, of lines that might not.
  bool MayLog(int lane, std::string* more);
  // Lane 0 was lost by an end of its stream, and is so. By the thread that moves it.
  void NoteZeroEnd(bool ended) { zero_ended_.store(ended, std::memory_order_release); }
  bool zero_ended() const { return zero_ended_.load(std::memory_order_acquire); }
  bool heals() const { return lanes_.heals(); }
  void CountHealth() { health_.fetch_add(1, std::memory_order_relaxed); }
  ConnectionCounts tally() const;

  // True exactly when no lane has been up for too long.
  bool Overdue();

 private:
  LaneTable::Loss Note(const absl::Status& why, int lane, Arbiter::Loss how);

  const ConnectionSetup* const setup_;
  const Link<ConnectionEnd> end_;
  LaneTable lanes_;
  Mutex arbiter_mutex_;
  Arbiter arbiter_ TCPX_GUARDED_BY(arbiter_mutex_);
  std::atomic<bool> zero_ended_{false};
  std::atomic<uint64_t> health_{0};
};

}  // namespace tcpx
