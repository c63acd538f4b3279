#include "net_socket/health/clock_exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tcpx {
namespace {

constexpr char kVersion = 1;
using Times = std::array<int64_t, 3>;

}  // namespace

// Numbers lie on the wire as in memory (message/wire.cc).
std::string EncodeClock(const ClockRecord& record) {
  const Times times = {record.asked_ns, record.heard_ns, record.answered_ns};
  std::string text(1, kVersion);
  text.append(reinterpret_cast<const char*>(times.data()), sizeof(times));
  text.append(record.who, 0, kClockNameMax);
  return text + '\0';
}

bool DecodeClock(absl::string_view text, ClockRecord* record) {
  Times times;
  if (text.size() < 1 + sizeof(times) || text[0] < kVersion) return false;
  std::memcpy(times.data(), text.data() + 1, sizeof(times));
  text.remove_prefix(1 + sizeof(times));
  const absl::string_view who = text.substr(0, text.find('\0'));
  const bool plain = std::all_of(who.begin(), who.end(), [](char c) { return c > ' ' && c <= '~'; });
  const bool in_order = times[0] > 0 && times[1] >= 0 && times[1] <= times[2] && (times[1] > 0) == (times[2] > 0);
  if (!plain || !in_order || who.size() > kClockNameMax) return false;
  *record = {times[0], times[1], times[2], std::string(who)};
  return true;
}

ClockRecord ClockExchange::Ask(int64_t now_ns) {
  asked_ns_ = now_ns;
  --left_;
  ClockRecord question;
  question.asked_ns = now_ns;
  return question;
}

ClockRecord ClockExchange::Begin(int64_t now_ns) {
  ++vain_;
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
  vain_ = 0;
  if (best_.peer.empty()) return std::nullopt;
  return best_;
}

}  // namespace tcpx
