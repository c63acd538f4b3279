#include "net_socket/comm/transfer_times.h"

#include <algorithm>

#include "common/clock.h"

namespace tcpx {
namespace {

uint64_t Span0(int64_t from_ns, int64_t to_ns) { return to_ns > from_ns ? static_cast<uint64_t>(to_ns - from_ns) : 0; }

constexpr int kReadAttempts = 100;

}  // namespace

void TransferTimes::Refused() {
  if (refused_ns_ == 0) refused_ns_ = MonotonicNanos();
}

int64_t TransferTimes::Begin(bool timed) {
  timed |= turn_++ % kTimedEvery == 0;
  const int64_t now = std::max<int64_t>(timed ? MonotonicNanos() : CoarseMonotonicNanos(), frontier_ns_);
  latest_ns_ = now;
  if (posted_++ == 0) {
    const Change change(this);
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
  const Change change(this);
  unheard_ns_.Add(Span0(from, heard));
  moving_ns_.Add(Span0(heard, done));
  untested_ns_.Add(Span0(done, now));
  frontier_ns_ = now;
  if (--posted_ == 0) idle_ = true;
}

bool TransferTimes::Read(State* state) const {
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    const uint32_t version = version_.load(std::memory_order_acquire);
    state->waits = {idle_ns_, no_credit_ns_, unheard_ns_, moving_ns_, untested_ns_};
    state->frontier_ns = frontier_ns_;
    state->idle = idle_;
    state->refused = refused_ns_ != 0;
    if (version % 2 == 0 && version_.load(std::memory_order_relaxed) == version) return true;
  }
  return false;
}

// The stretch that is not over yet is guessed from the present state.
WaitNumbers TransferTimes::WaitsUntil(int64_t now_ns, const Flight& flight, bool uncalled, OpenWait* open) const {
  State state;
  if (!Read(&state)) return state.waits;
  if (open->from_ns != state.frontier_ns) {
    open->from_ns = open->looked_ns = state.frontier_ns;
    open->guessed = {};
  }
  const uint64_t more = Span0(open->looked_ns, now_ns);
  open->looked_ns = std::max(open->looked_ns, now_ns);
  open->calls = calls_;
  WaitNumbers* const guessed = &open->guessed;
  if (state.idle) {
    (state.refused ? guessed->no_credit_ns : guessed->idle_ns) += more;
  } else if (flight.messages == 0) {
    guessed->untested_ns += more;
  } else if (receives_ && !flight.total_known) {
    guessed->unheard_ns += more;
    if (uncalled) open->uncalled_unheard_ns += more;
  } else {
    guessed->moving_ns += more;
    if (uncalled) open->uncalled_moving_ns += more;
  }
  WaitNumbers all = state.waits;
  all.idle_ns += guessed->idle_ns;
  all.no_credit_ns += guessed->no_credit_ns;
  all.unheard_ns += guessed->unheard_ns;
  all.moving_ns += guessed->moving_ns;
  all.untested_ns += guessed->untested_ns;
  const uint64_t unheard = std::min(all.unheard_ns, open->uncalled_unheard_ns);
  const uint64_t moving = std::min(all.moving_ns, open->uncalled_moving_ns);
  all.unheard_ns -= unheard;
  all.moving_ns -= moving;
  all.uncalled_ns = unheard + moving;
  return all;
}

}  // namespace tcpx
