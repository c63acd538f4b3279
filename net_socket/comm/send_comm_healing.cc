// What a send comm does with lanes that are lost or suspected (docs/healing.md).
#include <errno.h>

#include <string>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/send_comm.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/send/send_again.h"

namespace tcpx {

bool SendComm::AllAcknowledged() const {
  for (int lane = 0; lane < lane_count(); ++lane) {
    if (healing()->lost(lane) || (healing()->up(lane) && QueuedBytes(lane_fd(lane)) != 0)) return false;
  }
  return true;
}

// The lanes' ends tell it too; one that is lost has none.
void SendComm::PeerLeft() {
  if (healing() == nullptr) return;
  const bool waits = healing()->PeerLeft();
  Comm::PeerLeft();
  if (waits) PeerGone(absl::UnavailableError("the peer closed the connection"), kNoLane, false);
}

void SendComm::LaneLost(int lane) {
  auto records_taken = watch_->FreezeInLoop(lane);
  if (!records_taken.ok()) return PeerGone(records_taken.status(), lane, false);
  if (!failed()) setup().redialler->RedialInLoop(lane, *records_taken, link());
}

bool SendComm::LanesOverdue() { return healing()->NoneFor(runtime()->options.reconnect_timeout_ns); }

void SendComm::LaneResumed(int lane) {
  Comm::LaneResumed(lane);
  watch_->ResumeInLoop(lane, lane_fd(lane));
  moving_[static_cast<size_t>(lane)] = false;
  if (lane > 0) rates_.Opened(lane - 1);
  if (path().shuffles_lanes) TCPX_INFO_TO(setup().communicator->log, "lane %d has a socket", lane);
  if (lane == 0) LaneHealing::SendAgainInLoop(&runtime()->reactor, link());
}

absl::Status SendComm::ReplaceSocketOf(int lane, SocketOffer offer) {
  if (lane > 0) return bulk_[static_cast<size_t>(lane) - 1]->Replace(std::move(offer));
  absl::Status replaced = ReplaceSocket(lane_fd(0), offer.fd);
  if (replaced.ok() && !held_->Rewind(offer.position)) replaced = absl::UnavailableError(kLostAcknowledged);
  zero_lost_ = false;
  healing()->Back(0);
  offer.done(0);
  return replaced;
}

// Nobody tests what was done when it was copied. A socket that breaks is the watch's to report: here a link is held.
bool SendComm::SendsAgain() {
  if (!mutex_.try_lock()) return true;
  MutexLock lock(mutex_, std::adopt_lock);
  if (failed() || zero_lost_ || !held_->resending()) return false;
  const int err = SendAgain(lane_fd(0), held_.get());
  return err == 0 ? held_->resending() : IsTransientErrno(err);
}

// Of the other lanes nothing is done before it is acknowledged.
bool SendComm::MayClose() {
  if (!held_->empty()) held_->Acked(QueuedBytes(lane_fd(0)));
  Flush();
  return held_->empty() || (!healing()->lost(0) && !held_->resending());
}

bool SendComm::LooksForSilence(int64_t now_ns) {
  if (failed() || !healing()->heals()) return false;
  for (int lane = 0; lane < lane_count(); ++lane) {
    LaneSilence& silence = healing()->silence(lane);
    LaneTcpInfo info;
    if (QueuedBytes(lane_fd(lane)) <= 0 || !healing()->up(lane)) {
      silence.Rest();
    } else if (ReadLaneTcpInfo(lane_fd(lane), &info) && silence.Suspects(info, now_ns)) {
      setup().redialler->TryBesideInLoop(lane, link());
    }
  }
  return true;
}

bool SendComm::LetsGo(int lane, uint32_t* records_taken) {
  if (failed() || !healing()->heals()) return false;
  LaneSilence& silence = healing()->silence(lane);
  const int64_t now_ns = MonotonicNanos();
  if (!healing()->lost(lane)) {
    LaneTcpInfo info;
    const bool moves = moving_[static_cast<size_t>(lane)];
    if (!moves && (!ReadLaneTcpInfo(lane_fd(lane), &info) || !silence.Suspects(info, now_ns))) return false;
    const auto why =
        absl::UnavailableError(moves ? "it is slow, and is moved"
                                     : "nothing of what it holds is acknowledged, and another socket found the peer");
    if (!healing()->LetGo(why, lane)) return false;
    if (!moves) silence.Moved(now_ns);
  }
  const auto taken = watch_->FreezeInLoop(lane);
  if (!taken.ok()) {
    PeerGone(taken.status(), lane, false);
    return false;
  }
  *records_taken = *taken;
  return true;
}

}  // namespace tcpx
