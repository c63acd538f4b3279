// What a send comm does with lanes that are lost or suspected (docs/healing.md).
#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/comm/failure_verdict.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/send_comm.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/seal/seals.h"
#include "net_socket/send/send_again.h"

namespace tcpx {
namespace {

// From one try to send again to the next, at first and at last.
constexpr int64_t kSendAgainNs = 100 * kMicrosecond;
constexpr int64_t kSendAgainMaxNs = 50 * kMillisecond;

}  // namespace

void SendComm::WatchInLoop() {
  Comm::WatchInLoop();
  if (healing() != nullptr) setup().redialler->StartInLoop(LinkTo<RedialledLanes>(this), taker());
}

ssize_t SendComm::SendZero(iovec* iov, int count) { return SendBy(sealer_.get(), seals_, lane_fd(0), iov, count); }

void SendComm::LaneZeroBroke(int err) {
  const absl::Status sealed = CheckSealer(seals_, sealer_.get());
  if (!sealed.ok()) return failure().Fail(sealed, 0);
  const absl::Status why = ErrnoStatus(err, "send");
  if (failure().LoseLane(why, 0)) {
    zero_lost_ = true;
  } else {
    failure().Fail(why, 0);
  }
}

bool SendComm::AllAcknowledged() const {
  for (int lane = 0; lane < lane_count(); ++lane) {
    if (healing()->lost(lane) || (healing()->up(lane) && QueuedBytes(lane_fd(lane)) != 0)) return false;
  }
  return true;
}

// Whose socket has died, or dies now, has no acknowledgement to come.
bool SendComm::LanesDecide(const SendRequest& request, const std::vector<uint64_t>& taken) {
  if (failed()) return false;
  PeerTookOf(taken[0], held_.get(), sealer_.get());
  const bool first = !std::exchange(lanes_asked_, true);
  for (size_t i = 0; i < bulk_.size() && first; ++i) {
    if (bulk_[i] == nullptr) continue;
    if (caller_driven_) {
      bulk_[i]->PeerTook(taken[i + 1]);
    } else {
      bulk_[i]->PeerClosed(taken[i + 1]);
      ProgressPool::Kick(bulk_[i].get());
    }
  }
  const bool bulk = striper_ != nullptr && request.message_bytes > express_bytes_;
  return request.done() || (bulk && !caller_driven_) || AllAcknowledged();
}

// The lanes' ends tell it too; one that is lost has none.
void SendComm::PeerLeft(const std::vector<uint64_t>& taken) {
  if (healing() == nullptr) return;
  const bool waits = healing()->PeerLeft(taken);
  Comm::PeerLeft(taken);
  if (waits) PeerGone(absl::UnavailableError("the peer closed the connection"), kNoLane, false);
}

void SendComm::LaneLost(int lane) {
  auto records_taken = watch_->FreezeInLoop(lane);
  if (!records_taken.ok()) return PeerGone(records_taken.status(), lane, false);
  if (!failed()) setup().redialler->RedialInLoop(lane, *records_taken);
}

// Where this end closes, it needs the lane no more. Else nobody may call to be told, and the peer must hear it. With
// nothing on its way the peer may just have closed, and its word for that be lost: an error for whoever still sends.
void SendComm::LaneGone(const absl::Status& status, int lane) {
  if (!healing()->heals()) return;
  if (FlightNow().messages == 0) return PeerGone(status, lane, false);
  failure().FailFound(status, lane);
}

bool SendComm::LanesOverdue() { return healing()->NoneFor(runtime()->options.reconnect_timeout_ns); }

void SendComm::LaneResumed(int lane, Seals* seals) {
  Comm::LaneResumed(lane, seals);
  watch_->ResumeInLoop(lane, lane_fd(lane), seals == nullptr ? nullptr : std::move(seals->opener));
  moving_[static_cast<size_t>(lane)] = false;
  if (lane > 0) rates_.Opened(lane - 1);
  if (path().shuffles_lanes) TCPX_INFO_TO(setup().communicator->log, "lane %d has a socket", lane);
  if (lane > 0) return;
  runtime()->reactor.RepeatInLoop(kSendAgainNs, [link = LinkTo(this), after_ns = kSendAgainNs]() mutable {
    after_ns = std::min(2 * after_ns, kSendAgainMaxNs);
    return link.Ask(false, [](SendComm* comm) { return comm->SendsAgain(); }) ? after_ns : Reactor::kOver;
  });
}

absl::Status SendComm::ReplaceSocketOf(int lane, SocketOffer offer) {
  if (lane > 0) return bulk_[static_cast<size_t>(lane) - 1]->Replace(std::move(offer));
  absl::Status replaced = ReplaceSocket(lane_fd(0), offer.fd);
  if (offer.seals != nullptr) sealer_ = std::move(offer.seals->sealer);
  if (replaced.ok() && !held_->Rewind(offer.position)) replaced = absl::UnavailableError(kLostAcknowledged);
  zero_lost_ = false;
  healing()->Back(0);
  offer.done(0);
  return replaced;
}

// Nobody tests what was done when it was copied. A socket that breaks is the watch's to report, a cipher is not: here a
// link is held.
bool SendComm::SendsAgain() {
  if (!mutex_.try_lock()) return true;
  MutexLock lock(mutex_, std::adopt_lock);
  if (failed() || zero_lost_ || !held_->resending()) return false;
  const int err = SendAgain(lane_fd(0), held_.get(), sealer_.get(), seals_);
  const absl::Status sealed = err == EPROTO ? CheckSealer(seals_, sealer_.get()) : absl::OkStatus();
  if (!sealed.ok()) {
    failure().FailFound(sealed, 0);
    return false;
  }
  return err == 0 ? held_->resending() : IsTransientErrno(err);
}

// Of the other lanes nothing is done before it is acknowledged.
bool SendComm::MayClose() {
  if (!held_->empty()) held_->Acked(QueuedOf(lane_fd(0), sealer_.get()));
  Flush();
  return held_->empty() || (!healing()->lost(0) && !held_->resending());
}

bool SendComm::LooksForSilence(int64_t now_ns) {
  if (failed() || !healing()->heals()) return false;
  for (int lane = 0; lane < lane_count(); ++lane) {
    LaneSilence& silence = healing()->silence(lane);
    LaneTcpInfo info;
    if (lane_fd(lane) < 0 || !healing()->up(lane) || QueuedBytes(lane_fd(lane)) <= 0) {
      silence.Rest();
    } else if (ReadLaneTcpInfo(lane_fd(lane), &info) && silence.Suspects(info, now_ns)) {
      moving_[static_cast<size_t>(lane)] = false;  // A move may have come to nothing.
      setup().redialler->TryBesideInLoop(lane);
    }
  }
  return true;
}

void SendComm::PeerIsUnheard(int lane) {
  if (healing() == nullptr || lane >= lane_count()) return;
  runtime()->reactor.Post(
      [link = LinkTo(this), lane] { link.With([lane](SendComm* comm) { comm->MovesUnheard(lane); }); });
}

void SendComm::MovesUnheard(int lane) {
  if (failed() || !healing()->heals() || !healing()->up(lane)) return;
  healing()->NoteUnheardInLoop(lane);
  moving_[static_cast<size_t>(lane)] = false;
  setup().redialler->TryBesideInLoop(lane);
}

bool SendComm::LetsGo(int lane, LetGoWhy why, uint32_t* records_taken) {
  if (failed() || !healing()->heals()) return false;
  if (!healing()->lost(lane) && !healing()->up(lane)) return false;  // It is closed.
  if (!healing()->lost(lane) && !(why == LetGoWhy::kSilent ? LetsSilentGo(lane) : LetsReturn(lane))) return false;
  const auto taken = watch_->FreezeInLoop(lane);
  if (!taken.ok()) {
    PeerGone(taken.status(), lane, false);
    return false;
  }
  *records_taken = *taken;
  return true;
}

bool SendComm::LetsSilentGo(int lane) {
  if (moving_[static_cast<size_t>(lane)]) {
    moving_[static_cast<size_t>(lane)] = false;
    return healing()->LetGo(absl::UnavailableError("it is slow, and is moved"), lane);
  }
  LaneSilence& silence = healing()->silence(lane);
  const int64_t now_ns = MonotonicNanos();
  LaneTcpInfo info;
  const bool unheard = healing()->TakeUnheardInLoop(lane);
  if (!unheard && (!ReadLaneTcpInfo(lane_fd(lane), &info) || !silence.Suspects(info, now_ns))) return false;
  const auto why = absl::UnavailableError(absl::StrCat(
      HealedVerdict(setup()), unheard ? "nothing of what the peer says on it arrives, and another socket found the peer"
                                      : "nothing of what it holds is acknowledged, and another socket found the peer"));
  if (!healing()->LetGo(why, lane)) return false;
  silence.Moved(now_ns);
  return true;
}

bool SendComm::LetsReturn(int lane) {
  return healing()->LetGo(absl::UnavailableError("it returns to its own path, which serves again"), lane);
}

void SendComm::LeavesPath(int lane, const absl::Status& why) {
  if (failed() || !healing()->heals() || !healing()->up(lane) || !healing()->LetGo(why, lane)) return;
  LaneLost(lane);
}

}  // namespace tcpx
