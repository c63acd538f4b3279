// clock_exchange.h: how far the peer's monotonic clock is ahead of ours. Pure.
//
// Purpose: a question has the time at which it is asked, its answer that, and the times at which it came and was
//          answered. The paths there and back are taken to be equally long; the error is at most half of the round
//          trip. So several questions are asked one after the other, and the one with the shortest round trip counts.
// Threads: one at a time.
// Units:   nanoseconds of MonotonicNanos, each of its own host.
// Errors:  none. An answer that was not asked for, or that takes no time, counts for nothing.
// Source:  RFC 5905, 8: the four times of NTP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net_socket/message/health_records.h"

namespace tcpx {

struct ClockOffset {
  std::string peer;
  int64_t at_ns = 0;      // in the middle of the round trip, by our clock
  int64_t offset_ns = 0;  // the peer's clock, less ours
  int64_t round_trip_ns = 0;
};

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

}  // namespace tcpx
