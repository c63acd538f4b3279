#include "net_socket/health/health_clock.h"

#include <optional>
#include <utility>

#include "common/clock.h"
#include "common/clock_notes.h"
#include "net_socket/message/health_records.h"

namespace tcpx {

// Two clocks that nobody disciplines drift apart by less than 100 us a second; between two measures it is a line.
constexpr int64_t kAskSecondNs = 10 * kSecond;
constexpr int64_t kAskEveryNs = 60 * kSecond;

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
  if (measured.has_value() && notes_ != nullptr) {
    notes_->Write(measured->peer, measured->at_ns, measured->offset_ns, measured->round_trip_ns);
  }
}

}  // namespace tcpx
