#include "net_socket/health/arbiter.h"

#include <algorithm>
#include <utility>

#include "net_socket/health/tuning.h"

namespace tcpx {

bool IsGone(const ProcessEvidence& process) {
  if (process.up) return false;
  if (process.refused_ns >= 0) return process.in_order || process.refused_ns >= tuning::kRefusedNs;
  const int64_t ended_ns = std::max(tuning::kEndedNs, tuning::kEndedRoundTrips * process.rtt_ns);
  return process.in_order && process.lost_ns >= ended_ns;
}

Arbiter::Arbiter(int lanes, int64_t silence_ns, int64_t alone_ns)
    : silence_ns_(silence_ns), alone_ns_(alone_ns), lanes_(static_cast<size_t>(lanes)) {}

void Arbiter::Progress(Lane* lane, int64_t now_ns) {
  lane->vain = lane->still = 0;
  lane->stuck_ns = now_ns;
}

// Nobody looks at an end that does nothing: what was known before that is not of now.
void Arbiter::See(Lane* lane, int64_t now_ns) {
  if (now_ns - lane->seen_ns > tuning::kNotLookedNs) lane->stuck_ns = 0;
  lane->seen_ns = now_ns;
}

void Arbiter::Lost(int lane, Loss how) {
  at(lane).loss = how;
  at(lane).counts = how != Loss::kOther;
  at(lane).looked = false;
  at(lane).idle_looks = 0;
  at(lane).silence.Forget();
}

void Arbiter::Back(int lane, const Stream& stream, int64_t now_ns) {
  Lane& one = at(lane);
  const bool moved = stream.position != one.position;
  one.position = stream.position;
  const bool counts = std::exchange(one.counts, true);
  one.looked = one.probed = false;
  one.idle_looks = 0;
  if (moved) Progress(&one, now_ns);
  if (!moved && counts) ++one.still;
  if (!stream.owes) {
    one.vain = 0;
    one.stuck_ns = 0;
    return;
  }
  if (one.stuck_ns == 0) one.stuck_ns = now_ns;
  if (!moved && counts) ++one.vain;
}

// A socket that has only just come may not have been given the bytes that the lane holds.
void Arbiter::LookAtIdle(int lane, int64_t now_ns) {
  Lane& one = at(lane);
  See(&one, now_ns);
  one.silence.Forget();
  if (++one.idle_looks < 2 && !one.looked) return;
  Progress(&one, now_ns);
  one.stuck_ns = 0;
}

Arbiter::Finding Arbiter::Look(int lane, const LaneTcpInfo& info, int64_t now_ns) {
  Lane& one = at(lane);
  if (info.held_bytes == 0) {
    LookAtIdle(lane, now_ns);
    return Finding::kFine;
  }
  See(&one, now_ns);
  const bool moved = one.looked && info.bytes_acked != one.acked;
  const bool peer_waits = info.window_closed() && info.heard_ms() * kMillisecond < silence_ns_ / 2;
  one.acked = info.bytes_acked;
  one.looked = true;
  one.idle_looks = 0;
  if (moved) Progress(&one, now_ns);
  if (one.stuck_ns == 0 || (peer_waits && one.vain == 0)) one.stuck_ns = now_ns;
  if (one.vain > 0 && now_ns - one.stuck_ns >= silence_ns_) return Finding::kVain;
  return one.silence.Suspects(info, now_ns) ? Finding::kSuspect : Finding::kFine;
}

Arbiter::Finding Arbiter::LookAtLost(int lane, bool alone, int64_t now_ns) {
  Lane& one = at(lane);
  See(&one, now_ns);
  const int64_t most_ns = alone ? std::max(silence_ns_, alone_ns_) : silence_ns_;
  const bool stuck = one.stuck_ns != 0 && now_ns - one.stuck_ns >= most_ns;
  return stuck ? Finding::kVain : Finding::kFine;
}

Arbiter::Probing Arbiter::Probes(int lane, const LaneTcpInfo& info) {
  const bool shut = info.window_closed();
  if (std::exchange(at(lane).probed, shut) == shut) return Probing::kAsIs;
  return shut ? Probing::kOften : Probing::kFreely;
}

int64_t Arbiter::DialAtNs(int lane, int64_t now_ns) {
  Lane& one = at(lane);
  int64_t at_ns = now_ns;
  if (one.dialled_ns != 0) {
    const int64_t pause_ns = tuning::kBetweenDialsNs << std::min(one.vain, 10);
    at_ns = std::max(at_ns, one.dialled_ns + std::min(pause_ns, tuning::kBetweenDialsMaxNs));
  }
  if (one.vain > 0) {
    at_ns = std::max(at_ns, vain_dial_ns_ + tuning::kVainDialsNs);
    vain_dial_ns_ = at_ns;
  }
  one.dialled_ns = at_ns;
  return at_ns;
}

bool Arbiter::Refused(bool up, int64_t now_ns) {
  ProcessEvidence process;
  process.up = up;
  process.refused_ns = refusals_.ForNs(now_ns);
  if (up) refusals_.Forget();
  return IsGone(process);
}

bool Arbiter::MayTell(int lane, int64_t now_ns) {
  if (at(lane).still < tuning::kVainMin) return true;
  if (told_ns_ != 0 && now_ns - told_ns_ < tuning::kVainLinesNs) return false;
  told_ns_ = now_ns;
  return true;
}

bool Arbiter::Warns(int64_t now_ns) {
  const auto vain = [now_ns](const Lane& lane) {
    return lane.vain >= tuning::kVainMin && lane.stuck_ns != 0 && now_ns - lane.stuck_ns >= tuning::kVainWarnNs;
  };
  if (warned_ || std::none_of(lanes_.begin(), lanes_.end(), vain)) return false;
  warned_ = true;
  return true;
}

Vain Arbiter::vain() const {
  for (const Lane& lane : lanes_) {
    if (lane.vain >= tuning::kVainMin) return lane.loss == Loss::kSilent ? Vain::kSilent : Vain::kReset;
  }
  return Vain::kNone;
}

}  // namespace tcpx
