#include "net_socket/comm/sender_healing.h"

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/health/lane_liveness.h"

namespace tcpx {

void SenderHealing::LaneLostInLoop(int lane) {
  uint32_t records_taken = 0;
  if (!parts_.Freeze(lane, &records_taken)) return;
  if (!parts_.failure->failed()) parts_.setup->redialler->RedialInLoop(lane, records_taken);
}

// An end that closes no longer needs the lane. Otherwise the peer must hear of the failure, even if no caller ever asks
// here. While nothing is under way, or this end has said bye, the peer may simply have closed, and its message about
// that may be lost: that is an error only for a caller that still sends.
void SenderHealing::LaneGone(const absl::Status& status, int lane) {
  if (!healing().heals()) return;
  if (parts_.end->FlightNow().messages == 0 || parts_.loss->parting()) return parts_.loss->Note(status, lane, false);
  parts_.failure->FailFound(status, lane);
}

bool SenderHealing::LooksForSilenceInLoop(int64_t now_ns) {
  if (!parts_.heals()) return false;
  const Flight flight = parts_.end->FlightNow();
  (void)stall_.Stalled(flight, now_ns, 0);
  for (int lane = 0; lane < parts_.setup->lane_count(); ++lane) {
    if (parts_.setup->lane_fd(lane) < 0) continue;
    const int64_t since_ns = healing().lanes().lost(lane) && Needs(lane, flight) ? stall_.since_ns() : 0;
    healing().Judge([&](Arbiter* arbiter) { arbiter->Awaited(lane, since_ns); });
    Look(lane, now_ns);
  }
  return true;
}

// A message of up to TCPX_EXPRESS_BYTES goes by lane 0, a larger one by any other, where there are others.
bool SenderHealing::Needs(int lane, const Flight& flight) const {
  const LaneTable& lanes = healing().lanes();
  if (flight.bytes_total <= parts_.setup->express_bytes || lanes.CountMade() <= 1) return lane == 0;
  for (int other = 1; other < parts_.setup->lane_count(); ++other) {
    if (lanes.up(other)) return false;
  }
  return lane > 0;
}

void SenderHealing::Look(int lane, int64_t now_ns) {
  if (parts_.failure->LookAtLane(lane, now_ns) != Arbiter::Finding::kSuspect) return;
  healing().lanes().CancelMove(lane);  // It may have come to nothing.
  parts_.setup->redialler->TryBesideInLoop(lane);
}

void SenderHealing::PeerIsUnheard(int lane) {
  if (!parts_.setup->heals || lane >= parts_.setup->lane_count()) return;
  parts_.setup->runtime->reactor.Post(
      [self = self_, lane] { self.With([lane](SenderHealing* one) { one->MovesUnheard(lane); }); });
}

void SenderHealing::MovesUnheard(int lane) {
  if (!parts_.heals() || !healing().lanes().NoteUnheard(lane)) return;
  parts_.setup->redialler->TryBesideInLoop(lane);
}

bool SenderHealing::LetsGo(int lane, LetGoWhy why, uint32_t* records_taken) {
  if (!parts_.heals()) return false;
  const LaneState state = healing().lanes().state(lane);
  if (IsAbsent(state)) return false;
  if (IsUp(state) && why == LetGoWhy::kSilent && !LetsSilentGo(lane)) return false;
  if (IsUp(state) && why == LetGoWhy::kReturns &&
      !healing().LetGo(absl::UnavailableError("it returns to its own path, which works again"), lane)) {
    return false;
  }
  return parts_.Freeze(lane, records_taken);
}

bool SenderHealing::LetsSilentGo(int lane) {
  const LaneState state = healing().lanes().state(lane);
  if (state == LaneState::kMoving) {
    return healing().LetGo(absl::UnavailableError("it is slow, and is moved"), lane);
  }
  const int64_t now_ns = MonotonicNanos();
  LaneTcpInfo info;
  const bool unheard = state == LaneState::kUnheard;
  const int fd = parts_.setup->lane_fd(lane);
  const auto suspected = [&](Arbiter* arbiter) { return arbiter->Suspects(lane, info, now_ns); };
  if (!unheard && (!ReadLaneTcpInfo(fd, &info) || !healing().Judge(suspected))) return false;
  const Stuck stuck = healing().Judge([lane](Arbiter* arbiter) { return arbiter->stuck(lane); });
  const auto why = absl::UnavailableError(
      absl::StrCat(HealedVerdict(healing(), stuck),
                   unheard ? "nothing of what the peer says on it arrives, and another socket found the peer"
                           : "nothing of what it holds is acknowledged, and another socket found the peer"));
  if (!healing().LetGo(why, lane, unheard ? Arbiter::Loss::kOther : Arbiter::Loss::kSilent)) return false;
  healing().Judge([&](Arbiter* arbiter) { arbiter->Moved(lane, now_ns); });
  return true;
}

void SenderHealing::LeavesPath(int lane, const absl::Status& why) {
  if (!parts_.heals() || !healing().lanes().up(lane) || !healing().LetGo(why, lane)) return;
  LaneLostInLoop(lane);
}

}  // namespace tcpx
