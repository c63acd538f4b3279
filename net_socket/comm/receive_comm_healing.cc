// What a receive comm does with lanes that are lost or suspected (docs/healing.md).
#include <errno.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/health/lane_liveness.h"

namespace tcpx {
namespace {

constexpr int64_t kSenderGivesUpNs = 2 * kSecond;

}  // namespace

void ReceiveComm::LaneZeroEnded(int err) {
  if (err == EBADMSG) return failure().Fail(absl::UnavailableError(kNotAuthentic), 0);
  const absl::Status why =
      err == 0 ? absl::UnavailableError("the peer closed the connection") : ErrnoStatus(err, "receive");
  if (failure().LoseLane(why, 0)) {
    zero_lost_ = true;
    zero_lost_by_ = err;
    healing()->NoteZeroEnd(err == 0);
  } else if (err == 0 || failure().peer_left()) {
    if (intake_.cut()) return failure().Fail(absl::UnavailableError(kCutRecord), 0);
    lane_zero_.End();
  } else {
    failure().Fail(why, 0);
  }
}

void ReceiveComm::LaneLost(int) {
  healing()->AwaitInLoop(
      [link = LinkTo(this)] { return link.Ask(false, [](ReceiveComm* comm) { return comm->AwaitsLanes(); }); });
}

// A sender that is there gives up first, and says why.
bool ReceiveComm::AwaitsLanes() {
  const int64_t bound_ns = runtime()->options.reconnect_timeout_ns;
  const bool over = healing()->NoneFor(bound_ns + kSenderGivesUpNs);
  if (healing()->heals() && healing()->AnyLost() && !failed() && !over) return true;
  healing()->AwaitedInLoop();
  if (!healing()->heals() || !over) return false;
  failure().FailFound(absl::UnavailableError(absl::StrFormat(
                          "all lanes were lost and the peer has brought none back within %d s (TCPX_RECONNECT_TIMEOUT)",
                          bound_ns / kSecond)),
                      kNoLane);
  return false;
}

// Credits that nobody acknowledges: only the sender can dial.
bool ReceiveComm::LooksForSilence(int64_t now_ns) {
  if (failed() || !healing()->heals()) return false;
  LaneSilence& silence = healing()->silence(0);
  LaneTcpInfo info;
  if (QueuedBytes(lane_fd(0)) <= 0 || healing()->lost(0)) {
    silence.Rest();
  } else if (ReadLaneTcpInfo(lane_fd(0), &info) && silence.Suspects(info, now_ns) &&
             setup().health->members().AskForAnother(setup().connection_id, 0)) {
    silence.Moved(now_ns);
  }
  return true;
}

bool ReceiveComm::LaneZeroWaits() {
  if (!zero_lost_ || failure().heals()) return zero_lost_;
  zero_lost_ = false;
  LaneZeroEnded(zero_lost_by_);
  return false;
}

absl::Status ReceiveComm::ReplaceSocketOf(int lane, SocketOffer offer) {
  if (lane > 0) return bulk_[static_cast<size_t>(lane) - 1]->Replace(std::move(offer));
  const bool authentic = intake_.Freeze(lane_fd(0));
  zero_lost_ = false;
  healing()->NoteZeroEnd(false);
  healing()->Back(0);
  absl::Status replaced;
  {
    MutexLock lock(seal_mutex_);
    replaced = ReplaceSocket(lane_fd(0), offer.fd);
    if (offer.seals != nullptr) sealer_ = std::move(offer.seals->sealer);
    offer.done(intake_.taken());  // The answer goes before the credits, and before an error.
  }
  if (offer.seals != nullptr) intake_.OpenBy(std::move(offer.seals->opener));
  if (!authentic) replaced = absl::UnavailableError(kNotAuthentic);
  zero_holds_ = intake_.holds();
  tuning_.SocketReplaced();
  LeaveAnswering(0);
  if (credits_ == nullptr || !replaced.ok()) return replaced;
  if (!credits_->Rewind(static_cast<uint32_t>(offer.position)))
    return absl::UnavailableError("the peer says that it has had other credits than there are");
  return SendCredits();
}

std::vector<uint64_t> ReceiveComm::TakenByLane() {
  std::vector<uint64_t> taken = {intake_.taken()};
  for (auto& lane : bulk_) taken.push_back(lane == nullptr ? 0 : lane->taken());
  return taken;
}

}  // namespace tcpx
