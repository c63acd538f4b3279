// rejected_peers.h: what the log says about sockets that reach a listening port and are no peer's.
//
// Purpose: one line for each kind of rejection at once, then one for all that came within a minute, with their number:
//          an operator learns that somebody knocks, and a scanner does not fill the disk.
// Threads: the reactor.
// Units:   nanoseconds.
// Lifetime: borrows the reactor; CloseInLoop before it stops.
#pragma once

#include <cstdint>
#include <map>

#include "common/address.h"
#include "common/clock.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/message/hello_status.h"

namespace tcpx {

class RejectedPeers {
 public:
  // A guess: rare enough for a log that is kept for weeks, often enough to see when it began and ended.
  static constexpr int64_t kPeriodNs = 60 * kSecond;

  explicit RejectedPeers(Reactor* reactor, int64_t period_ns = kPeriodNs) : reactor_(reactor), period_ns_(period_ns) {}

  void NoteInLoop(HelloStatus why, const SocketAddress& from);
  // Says what was only counted so far.
  void CloseInLoop();

 private:
  // A line was written less than a period ago.
  struct Count {
    int64_t counted = 0;  // since that line
    SocketAddress latest;
    Reactor::TimerId timer;
  };

  // False: there are none.
  bool SayCounted(HelloStatus why);

  Reactor* const reactor_;
  const int64_t period_ns_;
  std::map<HelloStatus, Count> counts_;
};

}  // namespace tcpx
