#include "net_socket/health/clock_exchange.h"

namespace tcpx {

ClockRecord ClockExchange::Ask(int64_t now_ns) {
  asked_ns_ = now_ns;
  --left_;
  ClockRecord question;
  question.asked_ns = now_ns;
  return question;
}

ClockRecord ClockExchange::Begin(int64_t now_ns) {
  ++unanswered_;
  left_ = kQuestions;
  best_ = ClockOffset();
  return Ask(now_ns);
}

std::optional<ClockOffset> ClockExchange::Hear(const ClockRecord& answer, int64_t now_ns,
                                               std::optional<ClockRecord>* more) {
  if (asked_ns_ == 0 || answer.asked_ns != asked_ns_ || !answer.answers() || answer.who.empty()) return std::nullopt;
  const int64_t round_trip_ns = (now_ns - asked_ns_) - (answer.answered_ns - answer.heard_ns);
  if (round_trip_ns > 0 && (best_.peer.empty() || round_trip_ns < best_.round_trip_ns)) {
    // Halves are added, because the clocks of two hosts may be centuries apart for all that anybody knows.
    const int64_t there_ns = answer.heard_ns / 2 + answer.answered_ns / 2;
    best_ = {answer.who, asked_ns_ + (now_ns - asked_ns_) / 2, there_ns - (asked_ns_ / 2 + now_ns / 2), round_trip_ns};
  }
  asked_ns_ = 0;
  answered_ = true;
  if (left_ > 0) {
    *more = Ask(now_ns);
    return std::nullopt;
  }
  unanswered_ = 0;
  if (best_.peer.empty()) return std::nullopt;
  return best_;
}

}  // namespace tcpx
