// lane_healing.h: which lanes of a connection have a socket, and whether those that lost it still get another one.
//
// Purpose: whoever moves a lane, or watches it, reports its loss here; the first report of each is logged, shown to the
//          peer, and told to the connection in the reactor, which there dials again (the sender) or waits for that (the
//          receiver). It ends for good when the peer has left or this end is closed.
//
// Threads: any; WithLanes by the reactor.
// Lifetime: borrows the setup. The link is the connection's own.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_COMM_LANE_HEALING_H_
#define TCPX_NET_SOCKET_COMM_LANE_HEALING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "net_socket/comm/connection_end.h"
#include "net_socket/health/comm_link.h"
#include "net_socket/health/lane_silence.h"
#include "net_socket/stats/counters.h"

namespace tcpx {

struct ConnectionSetup;
class Reactor;

class LaneHealing {
 public:
  LaneHealing(const ConnectionSetup* setup, Direction direction, std::shared_ptr<CommLink> link);

  // The socket of `lane` has broken. True: it gets another one. Not with a link held.
  bool Lose(const absl::Status& why, int lane);
  // `lane` is to get another one although its socket stands. False: it gets none.
  bool LetGo(const absl::Status& why, int lane);
  // The lane has got it, or one behind a rest, or its first. By whoever moves the lane.
  void Back(int lane);
  // Its sender closes it, and may open it again: no loss. False: it is lost, or the sender has no other.
  bool Rest(int lane);
  bool lost(int lane);
  // Since when it is lost; 0: it is not.
  int64_t lost_since_ns(int lane);
  // It never had a socket, or is closed, and may be opened.
  bool absent(int lane);
  // True exactly once behind each time that Back opened the lane: it was not lost before.
  bool TakeOpened(int lane);
  // It has a socket, as far as is known.
  bool up(int lane);
  // Lane 0 was lost by an end of its stream, and is so. By whoever moves it.
  void NoteZeroEnd(bool ended) { zero_ended_.store(ended, std::memory_order_release); }
  bool zero_ended() const { return zero_ended_.load(std::memory_order_acquire); }
  bool heals() const { return heals_.load(std::memory_order_acquire); }
  bool peer_left() const { return peer_left_.load(std::memory_order_acquire); }
  // In the reactor.
  LaneSilence& silence(int lane) { return silences_[static_cast<size_t>(lane)]; }
  // The peer asks for another socket for this lane.
  void NoteUnheardInLoop(int lane) { unheard_[static_cast<size_t>(lane)] = true; }
  // True exactly when it has, since the last call.
  bool TakeUnheardInLoop(int lane) {
    const bool unheard = unheard_[static_cast<size_t>(lane)];
    unheard_[static_cast<size_t>(lane)] = false;
    return unheard;
  }

  void CountResumed() { resumed_.fetch_add(1, std::memory_order_relaxed); }
  void CountHealth() { health_.fetch_add(1, std::memory_order_relaxed); }
  ConnectionCounts tally() const {
    return {lost_ever_.load(std::memory_order_relaxed), moved_.load(std::memory_order_relaxed),
            resumed_.load(std::memory_order_relaxed),   health_.load(std::memory_order_relaxed),
            added_.load(std::memory_order_relaxed),     dropped_.load(std::memory_order_relaxed)};
  }

  bool AnyLost();
  // True exactly when no lane has stood for so long.
  bool NoneFor(int64_t ns);
  // Asks Watched::AwaitsLanes now and then, until it says no.
  void AwaitInLoop();
  void AwaitedInLoop() { awaiting_ = false; }

  // Watched::LooksForSilence, again and again.
  static void LookInLoop(Reactor* reactor, const std::shared_ptr<CommLink>& link);
  // Watched::SendsAgain, until there is no need.
  static void SendAgainInLoop(Reactor* reactor, const std::shared_ptr<CommLink>& link);

  // The peer has left: nothing comes back. `taken` by lane, or empty (Watched::PeerLeft). True: a lane is lost.
  bool PeerLeft(const std::vector<uint64_t>& taken);
  // How much of each lane's stream the peer had taken when it left; empty: it has not, or does not say.
  std::vector<uint64_t> TakenAtEnd();
  // Nothing comes back, and nobody touches the lanes through WithLanes any more.
  void Close();
  // False: closed.
  template <typename Function>
  bool WithLanes(Function function) {
    MutexLock lock(mutex_);
    if (closed_) return false;
    function();
    return true;
  }

 private:
  enum class State : uint8_t { kNone, kUp, kLost, kResting };  // kNone: it never had a socket

  bool AnyLostLocked() const TCPX_REQUIRES(mutex_);
  // `dead`: its socket is.
  bool NoteLoss(const absl::Status& why, int lane, bool dead, bool* first);

  const ConnectionSetup* const setup_;
  const Direction direction_;
  const std::shared_ptr<CommLink> link_;
  std::vector<LaneSilence> silences_;  // by lane
  std::vector<bool> unheard_;          // by lane, in the reactor
  std::atomic<bool> heals_{true};
  std::atomic<bool> peer_left_{false};
  std::atomic<bool> zero_ended_{false};
  std::atomic<uint64_t> lost_ever_{0};
  std::atomic<uint64_t> moved_{0};
  std::atomic<uint64_t> resumed_{0};
  std::atomic<uint64_t> health_{0};
  std::atomic<uint64_t> added_{0};
  std::atomic<uint64_t> dropped_{0};
  Mutex mutex_;
  bool closed_ TCPX_GUARDED_BY(mutex_) = false;
  std::vector<State> states_ TCPX_GUARDED_BY(mutex_);     // by lane
  std::vector<bool> opened_ TCPX_GUARDED_BY(mutex_);      // by lane
  std::vector<int64_t> lost_ns_ TCPX_GUARDED_BY(mutex_);  // by lane: when it was lost last
  int64_t up_count_ TCPX_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> taken_at_end_ TCPX_GUARDED_BY(mutex_);
  int64_t none_since_ns_ TCPX_GUARDED_BY(mutex_) = 0;  // 0: a lane stands
  bool awaiting_ = false;                              // the reactor's
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_LANE_HEALING_H_
