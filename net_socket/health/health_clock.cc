// What passes on a health socket of its ends' clocks.
#include <string>

#include "common/clock.h"
#include "common/clock_notes.h"
#include "net_socket/health/clock_exchange.h"
#include "net_socket/health/health.h"
#include "net_socket/health/health_hub.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

// Two clocks that nobody disciplines drift apart by less than 100 us a second; between two measures it is a line.
constexpr int64_t kAskSecondNs = 10 * kSecond;
constexpr int64_t kAskEveryNs = 60 * kSecond;
// Of a peer that does not read: what it is told of failures matters more.
constexpr size_t kOutboxBytesMax = size_t{64} << 10;

}  // namespace

void Health::SayClockLocked(const ClockRecord& record) {
  if (state_ != HealthState::kUp || end_.has_value() || outbox_.size() > kOutboxBytesMax) return;
  said_left_ = true;
  SendNowLocked(ClockNotice(EncodeClock(record)));
}

// The dialling side asks: one of both is enough.
void Health::AskClockInLoop(int64_t again_ns) {
  if (!dialled_ || hub_->clock_notes() == nullptr) return;
  reactor_->CancelTimerInLoop(clock_timer_);
  {
    MutexLock lock(mutex_);
    if (state_ != HealthState::kUp || !clock_.asks()) return;
    SayClockLocked(clock_.Begin(MonotonicNanos()));
  }
  clock_timer_ = reactor_->AddTimerInLoop(MonotonicNanos() + again_ns, [weak = weak_from_this()] {
    const std::shared_ptr<Health> self = weak.lock();
    if (self != nullptr && self->up_in_loop()) self->AskClockInLoop(kAskEveryNs);
  });
}

void Health::BeginClockInLoop() { AskClockInLoop(kAskSecondNs); }

void Health::HearClock(const std::string& text) {
  const int64_t now_ns = MonotonicNanos();
  ClockNotes* const notes = hub_->clock_notes();
  ClockRecord record;
  if (!DecodeClock(text, &record)) return;
  MutexLock lock(mutex_);
  if (!record.answers()) {
    record.heard_ns = now_ns;
    record.who = notes == nullptr ? "" : notes->self();
    record.answered_ns = MonotonicNanos();
    return SayClockLocked(record);
  }
  std::optional<ClockRecord> more;
  const std::optional<ClockOffset> measured = clock_.Hear(record, now_ns, &more);
  if (more.has_value()) SayClockLocked(*more);
  if (measured.has_value() && notes != nullptr) {
    notes->Write(measured->peer, measured->at_ns, measured->offset_ns, measured->round_trip_ns);
  }
}

}  // namespace tcpx
