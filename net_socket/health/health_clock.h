// health_clock.h: measures, over a health socket, how far the peer's clock is from ours, where a timeline is written.
//
// Purpose: a question has the time at which it is asked, its answer that, and the times at which it came and was
//          answered. The paths there and back are taken to be equally long; the error is at most half of the round
//          trip. So several questions are asked one after the other, and the one with the shortest round trip counts.
// Threads: any; InLoop: in the reactor. An exchange: one at a time.
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
  bool asks() const { return answered_ || unanswered_ < kUnansweredMax; }
  // The first question of a row; what is left of an earlier one counts for nothing.
  ClockRecord Begin(int64_t now_ns);
  // `more`: the next question, if there is one. With the last answer: what came of the row.
  std::optional<ClockOffset> Hear(const ClockRecord& answer, int64_t now_ns, std::optional<ClockRecord>* more);

 private:
  ClockRecord Ask(int64_t now_ns);

  int64_t asked_ns_ = 0;  // 0: nothing is
  int left_ = 0;
  int unanswered_ = 0;
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

}  // namespace tcpx
