#include "net_socket/comm/transfer_times.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "common/clock.h"

namespace tcpx {
namespace {

uint64_t Span0(int64_t from_ns, int64_t to_ns) { return to_ns > from_ns ? static_cast<uint64_t>(to_ns - from_ns) : 0; }

}  // namespace

void TransferTimes::NoteCaller() {
  const pthread_t self = pthread_self();
  if (caller_id_ != 0 && pthread_equal(caller_, self) != 0) return;
  caller_ = self;
  caller_id_ = static_cast<int>(syscall(SYS_gettid));
}

void TransferTimes::Refused() {
  if (refused_ns_ == 0) refused_ns_ = MonotonicNanos();
}

int64_t TransferTimes::Begin(bool timed) {
  timed |= turn_++ % kTimedEvery == 0;
  const int64_t now = std::max<int64_t>(timed ? MonotonicNanos() : CoarseMonotonicNanos(), frontier_ns_);
  latest_ns_ = now;
  NoteCaller();
  if (posted_++ == 0) {
    const int64_t refused = refused_ns_ == 0 ? now : std::clamp<int64_t>(refused_ns_, frontier_ns_, now);
    idle_ns_.Add(Span0(frontier_ns_, refused));
    no_credit_ns_.Add(Span0(refused, now));
    frontier_ns_ = now;
    idle_ = false;
  }
  refused_ns_ = 0;
  return timed ? now : 0;
}

void TransferTimes::End(const Span& span) {
  const bool timed = span.begun_ns != 0;
  const int64_t from = frontier_ns_;
  const int64_t now = std::max(timed ? MonotonicNanos() : CoarseMonotonicNanos(), from);
  const size_t kind = span.bulk ? 1 : 0;
  sizes_[kind].Add(span.bytes);
  if (timed) durations_[kind].Add(Span0(span.begun_ns, now));
  const int64_t done = span.done_ns == 0 ? now : std::clamp(span.done_ns, from, now);
  const int64_t heard = !receives_ ? from : span.first_ns == 0 ? done : std::clamp(span.first_ns, from, done);
  unheard_ns_.Add(Span0(from, heard));
  moving_ns_.Add(Span0(heard, done));
  untested_ns_.Add(Span0(done, now));
  frontier_ns_ = now;
  if (--posted_ == 0) idle_ = true;
}

// The stretch that is not over yet is guessed from how things stand.
WaitNumbers TransferTimes::WaitsUntil(int64_t now_ns, const Flight& flight) const {
  WaitNumbers waits;
  int64_t frontier = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    frontier = frontier_ns_;
    waits = {idle_ns_.get(), no_credit_ns_.get(), unheard_ns_.get(), moving_ns_.get(), untested_ns_.get()};
    if (frontier == frontier_ns_) break;
  }
  const uint64_t open = Span0(frontier, now_ns);
  if (idle_) {
    (refused_ns_ == 0 ? waits.idle_ns : waits.no_credit_ns) += open;
  } else if (flight.messages == 0) {
    waits.untested_ns += open;
  } else if (receives_ && !flight.total_known) {
    waits.unheard_ns += open;
  } else {
    waits.moving_ns += open;
  }
  return waits;
}

}  // namespace tcpx
