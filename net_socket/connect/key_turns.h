// key_turns.h: whose hello is read next, where reading it may cost a key agreement.
//
// Purpose: a key agreement takes a hundred microseconds, and a stranger with a ticket may ask for as many as he has
//          sockets. So they are served by turns of the loop, each short, and within it by sources (an IPv4
//          address, an IPv6 /64), one each in a circle: a crowd from one address delays itself.
// Threads: the reactor.
// Lifetime: borrows the reactor. A waiter gives up before it is destroyed; once served it no longer waits.
// Units:   nanoseconds. Errors: none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "common/address.h"
#include "common/clock.h"
#include "net_socket/engine/reactor.h"

namespace tcpx {

using PeerSource = std::array<uint8_t, 16>;
PeerSource SourceOf(const SocketAddress& from);

class KeyTurns {
 public:
  // A turn begins nothing more after so long: some ten agreements, and far less than a timer may be late.
  static constexpr int64_t kTurnNs = kMillisecond;

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
  void ServeLater();
  void ServeInLoop();

  Reactor* const reactor_;
  bool serves_ = false;                                           // soon
  std::deque<PeerSource> circle_;                                 // those of waiting_, each once
  absl::flat_hash_map<PeerSource, std::deque<Waiter*>> waiting_;  // none is empty
};

}  // namespace tcpx
