// dial_turns.h: whose dial begins next, where a process dials another one thousands of times.
//
// Purpose: the peer's kernel queues some thousands of sockets (somaxconn), and the peer has room for some thousands
//          without a hello (pending_hello.h). Beyond that each newcomer costs another one its place, both are dialled
//          again, and nobody ever gets through. So a few hundred lanes at a time are dialled, by peer, in their order.
// Threads: the reactor.
// Lifetime: borrows the reactor. CloseInLoop comes before the end.
// Units:   nanoseconds.
// Errors:  none: where none ends for kStalledNs the next ones begin all the same.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/clock.h"
#include "net_socket/engine/reactor.h"

namespace tcpx {

class DialTurns {
 public:
  // Lanes to one peer at once: half of the room of an acceptor with 4096 descriptors.
  static constexpr int kLanesAtOnce = 512;
  // Those that have begun count until they end. If none has ended for this long, they may wait for something that only
  // a later one brings, and count no more. Too short: a busy peer gets all of them at once after all.
  static constexpr int64_t kStalledNs = 5 * kSecond;

  explicit DialTurns(Reactor* reactor) : reactor_(reactor) {}

  // Calls `start` once it is this dial's turn: at once, or later.
  void AwaitInLoop(const std::string& peer, uint64_t dial, int lanes, std::function<void()> start) {
    peers_[peer].waiting.push_back({dial, lanes, std::move(start)});
    ServeInLoop(peer);
  }
  // It has ended, or waits no more. Once that is known: a no-op.
  void EndedInLoop(const std::string& peer, uint64_t dial);
  void CloseInLoop() {
    for (auto& [name, peer] : peers_) reactor_->CancelTimerInLoop(peer.timer);
    peers_.clear();
  }

 private:
  struct Turn {
    uint64_t dial = 0;
    int lanes = 0;
    std::function<void()> start;
  };
  struct Peer {
    std::deque<Turn> waiting;
    absl::flat_hash_map<uint64_t, int> begun;  // their lanes
    int lanes = 0;                             // of those
    int64_t stalled_at_ns = 0;                 // if none ends before
    Reactor::TimerId timer{0, 0};
  };

  void ServeInLoop(const std::string& name);
  void ServeAtInLoop(const std::string& name, int64_t at_ns);

  Reactor* const reactor_;
  std::map<std::string, Peer> peers_;  // with a dial that waits or has begun
};

}  // namespace tcpx
