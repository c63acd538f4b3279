// health_clock.h: measures, over a health socket, how far the peer's clock is from ours, where a timeline is written.
//
// Threads: any; InLoop: in the reactor.
// Lifetime: borrows all, which outlive it.
// Errors:  none: what is not answered is not noted.
#pragma once

#include <memory>
#include <string>

#include "common/mutex.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/clock_exchange.h"
#include "net_socket/health/health_socket.h"

namespace tcpx {

class ClockNotes;

class HealthClock {
 public:
  // `notes` null: no timeline is written here. `asks`: one end of the two does.
  HealthClock(Reactor* reactor, HealthSocket* socket, ClockNotes* notes, bool asks)
      : reactor_(reactor), socket_(socket), notes_(notes), asks_(asks && notes != nullptr) {}

  // The socket is up. `self`: this.
  void BeginInLoop(std::weak_ptr<HealthClock> self);
  // A question, or an answer.
  void Hear(const std::string& text);

 private:
  // False: no further question is asked.
  bool Ask();
  void Say(const ClockRecord& record);

  Reactor* const reactor_;
  HealthSocket* const socket_;
  ClockNotes* const notes_;
  const bool asks_;
  Reactor::TimerId timer_{0, 0};
  Mutex mutex_;
  ClockExchange exchange_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx
