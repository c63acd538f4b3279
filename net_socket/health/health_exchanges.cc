#include "net_socket/health/health_exchanges.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/clock_notes.h"
#include "net_socket/health/verdict.h"

namespace tcpx {
namespace {

// Two clocks that nobody disciplines drift apart by less than 100 us a second; between two measures it is a line.
constexpr int64_t kAskSecondNs = 10 * kSecond;
constexpr int64_t kAskEveryNs = 60 * kSecond;

std::string OwnName(const ConnectionId& id, uint64_t number) {
  WaitNews news;
  news.who = ThisProcessName();
  news.process = number;
  return WaitsNotice(id, EncodeNews(news));
}

}  // namespace

ClockRecord ClockExchange::Ask(int64_t now_ns) {
  asked_ns_ = now_ns;
  --left_;
  return {now_ns};
}

ClockRecord ClockExchange::Begin(int64_t now_ns) {
  ++rows_;
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
  if (best_.peer.empty()) return std::nullopt;
  return best_;
}

void HealthClock::Say(const ClockRecord& record) { (void)socket_->SayNow(ClockNotice(EncodeClock(record))); }

bool HealthClock::Ask() {
  if (socket_->state() != HealthState::kUp) return false;
  MutexLock lock(mutex_);
  if (!exchange_.asks()) return false;
  Say(exchange_.Begin(MonotonicNanos()));
  return true;
}

void HealthClock::BeginInLoop(std::weak_ptr<HealthClock> self) {
  if (!asks_) return;
  reactor_->CancelTimerInLoop(timer_);
  if (!Ask()) return;
  timer_ = reactor_->RepeatInLoop(kAskSecondNs, [self = std::move(self)] {
    const std::shared_ptr<HealthClock> clock = self.lock();
    return clock != nullptr && clock->Ask() ? kAskEveryNs : Reactor::kOver;
  });
}

void HealthClock::Hear(const std::string& text) {
  const int64_t now_ns = MonotonicNanos();
  ClockRecord record;
  if (!DecodeClock(text, &record)) return;
  if (!record.answers()) {
    record.heard_ns = now_ns;
    record.who = notes_ == nullptr ? "" : notes_->self();
    record.answered_ns = MonotonicNanos();
    return Say(record);
  }
  MutexLock lock(mutex_);
  std::optional<ClockRecord> more;
  const std::optional<ClockOffset> measured = exchange_.Hear(record, now_ns, &more);
  if (more.has_value()) Say(*more);
  if (measured.has_value()) {
    notes_->Write(measured->peer, measured->at_ns, measured->offset_ns, measured->round_trip_ns);
  }
}

void WaitExchange::Begin() {
  {
    MutexLock lock(mutex_);
    introduced_ = false;
  }
  if (dialled_) Introduce();
}

// A peer that closes resets what it has not read: after its bye that is no death.
void WaitExchange::Introduce() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(introduced_, true)) return;
  }
  (void)socket_->SayNow(OwnName(ConnectionId{}, ThisProcessNumber()), HealthSocket::Passing::kGreeting);
}

void WaitExchange::Hear(const HealthNotice& notice) {
  WaitNews news;
  if (!DecodeNews(notice.waits, &news)) return;
  if (notice.connection != ConnectionId{}) {
    if (news.asks) (void)socket_->SayNow(OwnName(notice.connection, 0));
    return;
  }
  {
    MutexLock lock(mutex_);
    peer_name_ = news.who;
    if (process_.empty()) process_ = news.process == 0 ? news.who : absl::StrCat("number ", news.process);
  }
  if (!dialled_) Introduce();
}

}  // namespace tcpx
