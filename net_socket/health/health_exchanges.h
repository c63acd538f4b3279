// health_exchanges.h: what the processes at both ends of a health socket tell each other of themselves: who they are,
// and, where a timeline is written, how far the peer's clock is from ours.
//
// Purpose: each process says its name when the socket comes up, the dialler first. A question what a connection waits
//          for that is not there (yet, or any more) is answered here: the process lives, and nothing of it is posted.
//          Of clocks a question has the time at which it is asked, its answer that, and the times at which it came and
//          was answered. The paths there and back are taken to be equally long; the error is at most half of the round
//          trip. So several questions are asked one after the other, and the one with the shortest round trip counts.
// Threads: any; InLoop: in the reactor. A ClockExchange: one at a time.
// Lifetime: borrows all, which outlive it.
// Units:   nanoseconds of MonotonicNanos, each of its own host.
// Errors:  none: what is not answered is not noted. An answer that was not asked for, or that takes no time, counts for
//          nothing.
// Source:  RFC 5905, 8: the four times of NTP.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/mutex.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/health_socket.h"
#include "net_socket/message/health_records.h"

namespace tcpx {

class ClockNotes;

struct ClockOffset {
  std::string peer;
  int64_t at_ns = 0;      // in the middle of the round trip, by our clock
  int64_t offset_ns = 0;  // the peer's clock, less ours
  int64_t round_trip_ns = 0;
};

// Pure.
class ClockExchange {
 public:
  static constexpr int kQuestions = 8;
  // A peer that has answered none of this many rows of questions is not asked again.
  static constexpr int kUnansweredMax = 3;

  // False: the peer has never answered.
  bool asks() const { return answered_ || rows_ < kUnansweredMax; }
  // The first question of a row; what is left of an earlier one counts for nothing.
  ClockRecord Begin(int64_t now_ns);
  // `more`: the next question, if there is one. With the last answer: what came of the row.
  std::optional<ClockOffset> Hear(const ClockRecord& answer, int64_t now_ns, std::optional<ClockRecord>* more);

 private:
  ClockRecord Ask(int64_t now_ns);

  int64_t asked_ns_ = 0;  // 0: nothing is
  int left_ = 0;
  int rows_ = 0;           // of questions that were begun
  bool answered_ = false;  // ever
  ClockOffset best_;
};

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

class WaitExchange {
 public:
  WaitExchange(HealthSocket* socket, bool dialled) : socket_(socket), dialled_(dialled) {}

  // A new socket: the dialling process says who it is.
  void Begin();
  // What no connection here has heard.
  void Hear(const HealthNotice& notice);
  // The peer's process, as it calls itself; empty: it is of a build that neither says so nor answers.
  std::string peer_name() const {
    MutexLock lock(mutex_);
    return peer_name_;
  }
  // What tells it from all other processes, as it first said: its number, or its name where it is of a build that says
  // no number. Empty: it has said nothing yet.
  std::string process() const {
    MutexLock lock(mutex_);
    return process_;
  }

 private:
  // Once a socket, however often the peer introduces itself.
  void Introduce();

  HealthSocket* const socket_;
  const bool dialled_;
  mutable Mutex mutex_;
  std::string peer_name_ TCPX_GUARDED_BY(mutex_);
  std::string process_ TCPX_GUARDED_BY(mutex_);
  bool introduced_ TCPX_GUARDED_BY(mutex_) = false;
};

}  // namespace tcpx
