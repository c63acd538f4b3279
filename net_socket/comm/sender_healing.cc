#include "net_socket/comm/sender_healing.h"

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/comm/failure_verdict.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/health/lane_liveness.h"

namespace tcpx {

void SenderHealing::LaneLostInLoop(int lane) {
  uint32_t records_taken = 0;
  if (!parts_.Freeze(lane, &records_taken)) return;
  if (!parts_.failure->failed()) parts_.setup->redialler->RedialInLoop(lane, records_taken);
}

// Where this end closes, it needs the lane no more. Else nobody may call and hear it, and the peer must. With nothing
// on its way the peer may just have closed, and its word for that be lost: an error for a caller who still sends.
void SenderHealing::LaneGone(const absl::Status& status, int lane) {
  if (!parts_.healing->heals()) return;
  if (parts_.end->FlightNow().messages == 0) return parts_.loss->Note(status, lane, false);
  parts_.failure->FailFound(status, lane);
}

bool SenderHealing::LanesOverdue() {
  return parts_.healing->NoneFor(parts_.setup->runtime->options.reconnect_timeout_ns);
}

bool SenderHealing::LooksForSilenceInLoop(int64_t now_ns) {
  if (!parts_.heals()) return false;
  for (int lane = 0; lane < parts_.setup->lane_count(); ++lane) {
    LaneSilence& silence = parts_.healing->silence(lane);
    const int fd = parts_.setup->lane_fd(lane);
    LaneTcpInfo info;
    if (fd < 0 || !parts_.healing->up(lane) || QueuedBytes(fd) <= 0) {
      silence.Forget();
    } else if (ReadLaneTcpInfo(fd, &info) && silence.Suspects(info, now_ns)) {
      parts_.healing->lanes().CancelMove(lane);  // It may have come to nothing.
      parts_.setup->redialler->TryBesideInLoop(lane);
    }
  }
  return true;
}

void SenderHealing::PeerIsUnheard(int lane) {
  if (parts_.healing == nullptr || lane >= parts_.setup->lane_count()) return;
  parts_.setup->runtime->reactor.Post(
      [self = self_, lane] { self.With([lane](SenderHealing* one) { one->MovesUnheard(lane); }); });
}

void SenderHealing::MovesUnheard(int lane) {
  if (!parts_.heals() || !parts_.healing->lanes().NoteUnheard(lane)) return;
  parts_.setup->redialler->TryBesideInLoop(lane);
}

bool SenderHealing::LetsGo(int lane, LetGoWhy why, uint32_t* records_taken) {
  if (!parts_.heals()) return false;
  const LaneState state = parts_.healing->lanes().state(lane);
  if (IsAbsent(state)) return false;
  if (IsUp(state) && why == LetGoWhy::kSilent && !LetsSilentGo(lane)) return false;
  if (IsUp(state) && why == LetGoWhy::kReturns &&
      !parts_.healing->LetGo(absl::UnavailableError("it returns to its own path, which serves again"), lane)) {
    return false;
  }
  return parts_.Freeze(lane, records_taken);
}

bool SenderHealing::LetsSilentGo(int lane) {
  const LaneState state = parts_.healing->lanes().state(lane);
  if (state == LaneState::kMoving) {
    return parts_.healing->LetGo(absl::UnavailableError("it is slow, and is moved"), lane);
  }
  LaneSilence& silence = parts_.healing->silence(lane);
  const int64_t now_ns = MonotonicNanos();
  LaneTcpInfo info;
  const bool unheard = state == LaneState::kUnheard;
  const int fd = parts_.setup->lane_fd(lane);
  if (!unheard && (!ReadLaneTcpInfo(fd, &info) || !silence.Suspects(info, now_ns))) return false;
  const auto why = absl::UnavailableError(
      absl::StrCat(HealedVerdict(*parts_.setup),
                   unheard ? "nothing of what the peer says on it arrives, and another socket found the peer"
                           : "nothing of what it holds is acknowledged, and another socket found the peer"));
  if (!parts_.healing->LetGo(why, lane)) return false;
  silence.Moved(now_ns);
  return true;
}

void SenderHealing::LeavesPath(int lane, const absl::Status& why) {
  if (!parts_.heals() || !parts_.healing->up(lane) || !parts_.healing->LetGo(why, lane)) return;
  LaneLostInLoop(lane);
}

}  // namespace tcpx
