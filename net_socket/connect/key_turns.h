// key_turns.h: whose hello is read next, where reading it may cost a key agreement.
//
// Purpose: a key agreement takes a hundred microseconds, and a stranger with a ticket can ask for one with each socket.
//          So they are served in turns of the loop, each short, and within it by sources (an IPv4 address, an IPv6
//          /64), one each in a circle: a crowd from one address delays itself.
// Threads: the reactor.
// Lifetime: borrows the reactor. A waiter gives up before it is destroyed; once served it no longer waits.
// Units:   nanoseconds. Errors: none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/address.h"
#include "common/clock.h"
#include "net_socket/engine/reactor.h"

namespace tcpx {

using PeerSource = std::array<uint8_t, 16>;
PeerSource SourceOf(const SocketAddress& from);

class KeyTurns {
 public:
  // A turn begins nothing more after this time: some three agreements. With 1 ms, and hellos read as they came, a
  // connect took up to 3 s while a stranger flooded the process on a busy machine; 0.1 to 0.3 s like this (flood_test).
  static constexpr int64_t kTurnNs = 300 * kMicrosecond;

  class Waiter {
   public:
    virtual void KeyTurnInLoop() = 0;

   protected:
    ~Waiter() = default;
  };

  explicit KeyTurns(Reactor* reactor) : reactor_(reactor) {}

  void AwaitInLoop(const PeerSource& source, Waiter* waiter);
  void GiveUpInLoop(const PeerSource& source, Waiter* waiter);

 private:
  void ServeLater() {
    if (!std::exchange(serves_, true)) reactor_->Post([this] { ServeInLoop(); });
  }
  void ServeInLoop();

  Reactor* const reactor_;
  bool serves_ = false;                                           // soon
  std::deque<PeerSource> circle_;                                 // those of waiting_, each once
  absl::flat_hash_map<PeerSource, std::deque<Waiter*>> waiting_;  // none is empty
};

}  // namespace tcpx
