#include "net_socket/health/arbiter.h"

namespace tcpx {

bool IsGone(const ProcessEvidence& process) {
  if (process.up) return false;
  if (process.refused_ns >= 0) return process.in_order || process.refused_ns >= tuning::kRefusedNs;
  const int64_t ended_ns = std::max(tuning::kEndedNs, tuning::kEndedRoundTrips * process.rtt_ns);
  return process.in_order && process.lost_ns >= ended_ns;
}

void Arbiter::Acked(int lane, const LaneTcpInfo& info, int64_t now_ns) {
  Lane& one = at(lane);
  const uint64_t bytes = info.bytes_acked;
  if (std::exchange(one.acked, bytes).value_or(bytes) != bytes) one.Progress(now_ns);
  if (info.held_bytes == 0) one.stuck_ns = 0;
}

void Arbiter::Lost(int lane, Loss how) {
  Lane& one = at(lane);
  if (how != Loss::kOther) one.loss = how;
  one.counts = how != Loss::kOther;
  one.looked = false;
  one.fresh = true;
  one.idle_looks = 0;
  one.silence.Forget();
}

void Arbiter::Back(int lane, const Stream& stream, int64_t now_ns) {
  Lane& one = at(lane);
  const bool moved = stream.position != one.position;
  one.position = stream.position;
  const bool counts = std::exchange(one.counts, true);
  const int64_t before_ns = std::exchange(one.back_ns, now_ns);
  answered_ns_ = now_ns;
  one.looked = one.probed = false;
  one.acked = stream.acked;
  one.idle_looks = 0;
  const int64_t awaited_ns = AwaitedNs(one, now_ns);
  one.lost_ns = one.awaited_ns = 0;
  one.ended = false;
  if (moved) one.Progress(now_ns);
  // One that lived for long without anything to move did well.
  if (now_ns - before_ns > tuning::kNotLookedNs) one.still = 0;
  if (!moved && counts && ++one.still == 1) one.still_ns = now_ns;
  one.fresh = stream.owes;
  if (!stream.owes) {
    one.stuck = one.sockets = 0;
    one.stuck_ns = 0;
    return;
  }
  if (one.stuck_ns == 0) one.stuck_ns = awaited_ns;
  if (!moved) ++one.sockets;
  if (!moved && counts) ++one.stuck;
}

// A socket that has only just come may not have been given the bytes that the lane holds.
void Arbiter::LookAtIdle(int lane, int64_t now_ns) {
  Lane& one = at(lane);
  one.See(now_ns);
  one.silence.Forget();
  if (++one.idle_looks < 2 && !one.looked) return;
  one.Progress(now_ns);
  one.stuck_ns = 0;
}

Arbiter::Finding Arbiter::Look(int lane, const LaneTcpInfo& info, int64_t now_ns) {
  Lane& one = at(lane);
  if (info.held_bytes == 0) {
    LookAtIdle(lane, now_ns);
    return Finding::kFine;
  }
  one.See(now_ns);
  // A window that is shut, and whose probes are answered, is as good: it is the peer that waits.
  const bool peer_waits =
      info.established && info.window_closed() && info.heard_ms() * kMillisecond < silence_ns_ / tuning::kHeardParts;
  Acked(lane, info, now_ns);
  if (one.looked && peer_waits) one.Progress(now_ns);
  one.looked = true;
  one.idle_looks = 0;
  if (one.stuck_ns == 0) one.stuck_ns = now_ns;
  const bool tried = one.sockets >= tuning::kStuckMin || (one.sockets > 0 && now_ns - one.back_ns >= tuning::kOneTryNs);
  if (tried && now_ns - one.stuck_ns >= silence_ns_) return Finding::kStuck;
  return one.silence.Suspects(info, now_ns) ? Finding::kSuspect : Finding::kFine;
}

Arbiter::Finding Arbiter::LookAtLost(int lane, bool alone, int64_t now_ns) {
  Lane& one = at(lane);
  one.See(now_ns);
  if (one.lost_ns == 0) one.lost_ns = now_ns;
  const int64_t most_ns = alone && !Answers(now_ns) ? std::max(silence_ns_, alone_ns_) : silence_ns_;
  // Since when something waits for it, or it has moved nothing: the earlier of the two.
  const int64_t awaited_ns = AwaitedNs(one, now_ns);
  const int64_t since_ns = one.stuck_ns == 0 ? awaited_ns : std::min(one.stuck_ns, awaited_ns);
  return !IsStopped(now_ns) && now_ns - since_ns >= most_ns ? Finding::kStuck : Finding::kFine;
}

// Its own pause comes before its turn: meanwhile others have theirs.
int64_t Arbiter::TakeFirstDial(int lane, int64_t now_ns) {
  Lane& one = at(lane);
  if (one.dialled_ns != 0) {
    const int64_t pause_ns = tuning::kBetweenDialsNs << std::min(one.still, tuning::kDoublingsMax);
    const int64_t at_ns = one.dialled_ns + std::min(pause_ns, tuning::kBetweenDialsMaxNs);
    if (now_ns < at_ns) return at_ns;
  }
  const int64_t at_ns = TakeDialTurn(lane, true, now_ns);
  if (at_ns == 0) one.dialled_ns = now_ns;
  return at_ns;
}

// All lanes that wait ask again at the same time, in the order in which they asked before: timers keep it.
int64_t Arbiter::TakeDialTurn(int lane, bool first, int64_t now_ns) {
  if (first && at(lane).still == 0) return 0;
  const int64_t at_ns = turn_ns_ + tuning::kStuckDialsNs;
  if (now_ns < at_ns) return at_ns;
  turn_ns_ = now_ns;
  return 0;
}

bool Arbiter::Refused(bool up, bool in_order, int64_t now_ns) {
  const int64_t before_ns = std::exchange(refused_ns_, now_ns);
  if (refused_since_ns_ == 0 || now_ns - before_ns > tuning::kRefusedNs) refused_since_ns_ = now_ns;
  ProcessEvidence process;
  process.up = up;
  process.in_order = in_order || std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.ended; });
  process.refused_ns = now_ns - refused_since_ns_;
  if (up) NotRefused();
  return IsGone(process);
}

bool Arbiter::MayLog(int lane, int64_t now_ns) {
  const bool stuck = at(lane).still >= tuning::kStuckMin;
  lines_ns_ = std::max(lines_ns_, now_ns - tuning::kLinesAtOnce * tuning::kStuckLinesNs);
  const bool soon = stuck && logged_ns_ != 0 && now_ns - logged_ns_ < tuning::kStuckLinesNs;
  if (soon || lines_ns_ + tuning::kStuckLinesNs > now_ns) {
    ++unlogged_;
    return false;
  }
  lines_ns_ += tuning::kStuckLinesNs;
  if (stuck) logged_ns_ = now_ns;
  return true;
}

Arbiter::Warning Arbiter::WarningOf(int lane, int64_t now_ns) const {
  const Lane& one = at(lane);
  Warning warning;
  warning.waits = one.stuck_ns != 0 && now_ns - one.stuck_ns >= tuning::kStuckWarnNs;
  warning.lost = one.lost_ns != 0 && now_ns - one.lost_ns >= silence_ns_ && !IsStopped(now_ns);
  const bool stuck = one.stuck >= tuning::kStuckMin && warning.waits;
  const bool recent = now_ns - one.back_ns <= tuning::kNotLookedNs;
  const bool still = one.still >= tuning::kStuckMin && recent && now_ns - one.still_ns >= tuning::kStillWarnNs;
  if (warning.lost || stuck || still) warning.lane = lane;
  return warning;
}

Arbiter::Warning Arbiter::Warns(int64_t now_ns) {
  Warning warning;
  for (int lane = 0; lane < static_cast<int>(lanes_.size()) && warning.lane < 0; ++lane) {
    warning = WarningOf(lane, now_ns);
  }
  return std::exchange(warned_, warning.lane >= 0) ? Warning() : warning;
}

Stuck Arbiter::stuck() const {
  const Lane* longest = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.stuck < tuning::kStuckMin) continue;
    if (longest == nullptr || lane.stuck_ns < longest->stuck_ns) longest = &lane;
  }
  return longest == nullptr ? Stuck::kNone : stuck(static_cast<int>(longest - lanes_.data()));
}

bool Arbiter::Unsettled(int64_t now_ns) const {
  return std::any_of(lanes_.begin(), lanes_.end(), [now_ns](const Lane& lane) {
    return lane.fresh && lane.stuck_ns != 0 && now_ns - lane.seen_ns <= tuning::kNotLookedNs;
  });
}

}  // namespace tcpx
