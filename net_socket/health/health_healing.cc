// What a health socket does that is lost: it is dialled again, or waited for (docs/healing.md).
#include <errno.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/health/health.h"
#include "net_socket/health/health_hub.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/message/failure_kind.h"

namespace tcpx {
namespace {

// From one look at a lost socket's peer to the next, while its end may be news, and later.
constexpr int64_t kAskNs = 20 * kMillisecond;
constexpr int64_t kAskLaterNs = 500 * kMillisecond;
constexpr int64_t kNewsNs = kSecond;
// A process that ends takes all its sockets with it, and ends one of them at least in order; one that lives has dialled
// again by then.
constexpr int64_t kEndedNs = 120 * kMillisecond;
// A dialler that is there gives up first.
constexpr int64_t kDiallerGivesUpNs = 2 * kSecond;
// Lanes are probed every two seconds meanwhile (Comm::HealthLost).
constexpr int64_t kHeardNs = 5 * kSecond;
// So long the end of a process waits for a socket that is lost.
constexpr int64_t kTellNs = 500 * kMillisecond;

}  // namespace

absl::Status Health::TakeLocked(const char* data, size_t bytes, std::vector<HealthNotice>* notices) {
  if (seals_.opener == nullptr) return reader_.Take(data, bytes, notices);
  std::string text;
  const bool authentic = seals_.opener->OpenAll(data, bytes, &text);
  seals_.opener->Rest();
  const absl::Status taken = reader_.Take(text.data(), text.size(), notices);
  return authentic ? taken : FailureOf(FailureKind::kForged, kNotAuthentic);
}

bool Health::TellsLocked() {
  if (state_ == HealthState::kLost) return true;
  return state_ == HealthState::kUp && (heals_ || !end_.has_value());
}

bool Health::MayHealInLoop() {
  bool silent = false;
  {
    MutexLock lock(mutex_);
    if (!heals_ || state_ != HealthState::kUp || !end_.has_value() || end_errno_ < 0 || OrderlyLocked()) return false;
    silent = IsSilentErrno(end_errno_);
    const bool redialled =
        std::any_of(members_.begin(), members_.end(), [](auto& member) { return member.second.redialler != nullptr; });
    if (dialled_ && !redialled && last_to_leave_ == nullptr) return false;
    if (!dialled_ && members_.empty()) return false;
  }
  return !silent || HeardWithinInLoop(settings_.peer_timeout_ns);
}

void Health::AwaitAnotherInLoop() {
  lost_since_ns_ = MonotonicNanos();
  lost_in_order_ = false;
  AskSoonInLoop(kAskNs);
}

void Health::LostInLoop() {
  AwaitAnotherInLoop();
  {
    MutexLock lock(mutex_);
    lost_in_order_ = end_->ok();
    const std::string why = end_->ok() ? "it ended" : std::string(end_->message());
    TCPX_INFO("the health socket %s %s is lost and will be %s: %s", dialled_ ? "to" : "from", peer_,
              dialled_ ? "dialled again" : "waited for", why);
  }
  for (auto& link : Links()) link->With([](Watched* comm) { comm->HealthLost(); });
  if (dialled_) RedialInLoop();
  if (lost_in_order_) hub_->DiedInLoop(*this, true);
}

void Health::BackInLoop() {
  TCPX_INFO("the health socket %s %s is back", dialled_ ? "to" : "from", peer_);
  bool counts = true;
  for (auto& link : Links()) link->With([&](Watched* comm) { comm->HealthBack(std::exchange(counts, false)); });
  if (telling_ != nullptr) StopTellingInLoop();
}

void Health::FailInLoop(const absl::Status& end) {
  HaltRedialler();
  {
    MutexLock lock(mutex_);
    if (state_ == HealthState::kUp) {
      DropSocketLocked(HealthState::kDown);
    } else if (state_ == HealthState::kLost) {
      MoveToLocked(HealthState::kDown);
    } else {
      return;
    }
    end_ = end;
  }
  const std::shared_ptr<Health> self = shared_from_this();
  StopTellingInLoop();
  TellEndInLoop();
  if (waiters_.empty() || dialler_ != nullptr) return;
  dialler_ = waiters_.front();
  dialler_->DialHealthInLoop();
}

void Health::RedialInLoop() {
  if (redialling_ == nullptr) {
    MutexLock lock(mutex_);
    for (auto& [id, member] : members_) {
      if (member.redialler != nullptr) redialling_ = member.redialler;
    }
    if (redialling_ == nullptr) redialling_ = last_to_leave_;
  }
  if (redialling_ == nullptr) return FailInLoop(absl::OkStatus());
  redialling_->DialInLoop(shared_from_this());
}

void Health::RefusedInLoop(const HealthRedialler* redialler) {
  const std::shared_ptr<Health> self = shared_from_this();
  if (redialling_.get() != redialler) return;
  HaltRedialler();
  std::shared_ptr<CommLink> refused;
  {
    MutexLock lock(mutex_);
    for (auto& [id, member] : members_) {
      if (member.redialler.get() != redialler) continue;
      refused = std::exchange(member.link, std::make_shared<CommLink>(nullptr));  // It hears of it once.
      member.redialler = nullptr;
    }
    if (last_to_leave_.get() == redialler) last_to_leave_ = nullptr;
  }
  if (refused != nullptr) refused->With([](Watched* comm) { comm->PeerEnded(); });
  RedialInLoop();
}

void Health::GoneInLoop(const HealthRedialler* redialler) {
  const std::shared_ptr<Health> self = shared_from_this();
  if (redialling_.get() == redialler) FailInLoop(absl::OkStatus());
}

void Health::HaltRedialler() {
  const std::shared_ptr<HealthRedialler> halted = std::move(redialling_);
  redialling_ = nullptr;
  if (halted != nullptr) halted->HaltInLoop();
}

void Health::AskSoonInLoop(int64_t after_ns) {
  reactor_->CancelTimerInLoop(ask_timer_);
  ask_timer_ = reactor_->AddDeadlineInLoop(after_ns, [weak = weak_from_this()] {
    const std::shared_ptr<Health> self = weak.lock();
    if (self != nullptr && self->state_in_loop() == HealthState::kLost) self->AskInLoop();
  });
}

void Health::AskInLoop() {
  const int64_t lost_ns = MonotonicNanos() - lost_since_ns_;
  if (uses_ == 0 && telling_ == nullptr) {
    CloseInLoop();
    return hub_->ForgetInLoop(this);
  }
  if (!dialled_ && PeerGoneInLoop(lost_ns)) return FailInLoop(absl::OkStatus());
  const absl::Status silence = SilenceInLoop();
  if (!silence.ok() && !HeardWithinInLoop(settings_.peer_timeout_ns)) return FailInLoop(silence);
  const int64_t bound_ns = settings_.reconnect_timeout_ns + (dialled_ ? 0 : kDiallerGivesUpNs);
  if (lost_ns >= bound_ns && !HeardWithinInLoop(kHeardNs)) {
    return FailInLoop(absl::UnavailableError(
        "the health socket to the peer was lost, and within TCPX_RECONNECT_TIMEOUT nothing has brought it back"));
  }
  AskSoonInLoop(lost_ns < kNewsNs ? kAskNs : kAskLaterNs);
}

absl::Status Health::SilenceInLoop() {
  MutexLock lock(mutex_);
  return end_.has_value() && IsSilentErrno(end_errno_) ? *end_ : absl::OkStatus();
}

bool Health::PeerGoneInLoop(int64_t lost_ns) {
  if (lost_ns < kEndedNs) return false;
  bool gone = false;
  bool stands = false;
  for (auto& link : Links()) {
    link->With([&](Watched* comm) {
      gone = gone || comm->LanesGoneFor(kEndedNs, !lost_in_order_);
      stands = stands || comm->LaneStands();
    });
  }
  return gone && !stands;
}

bool Health::HeardWithinInLoop(int64_t ns) {
  bool heard = false;
  for (auto& link : Links()) {
    if (!heard) link->With([&heard, ns](Watched* comm) { heard = comm->HeardWithin(ns); });
  }
  return heard;
}

void Health::LookSoonInLoop() {
  reactor_->CancelTimerInLoop(look_timer_);
  const int64_t at_ns = MonotonicNanos() + std::clamp(settings_.peer_timeout_ns / 20, LaneSilence::kEveryNs, kSecond);
  look_timer_ = reactor_->AddTimerInLoop(at_ns, [weak = weak_from_this()] {
    const std::shared_ptr<Health> self = weak.lock();
    if (self != nullptr && self->up_in_loop()) self->LookInLoop();
  });
}

void Health::LookInLoop() {
  bool silent = false;
  {
    MutexLock lock(mutex_);
    LaneTcpInfo info;
    if (ReadLaneTcpInfo(fd_.get(), &info)) {
      const bool suspected = silence_.Suspects(info, MonotonicNanos());
      silent = info.held_bytes > 0 ? suspected : info.probes >= LaneSilence::kVainMin;
    }
  }
  // Beside it: whichever is heard first carries on.
  if (silent) RedialInLoop();
  LookSoonInLoop();
}

bool Health::StaysToTellInLoop() {
  Poll();
  bool ended = false;
  {
    MutexLock lock(mutex_);
    if (!heals_ || said_.empty()) return false;
    ended = state_ == HealthState::kUp && end_.has_value();
  }
  if (ended) EndInLoop();
  if (state_in_loop() != HealthState::kLost || settings_.linger_ns == 0) return false;
  telling_ = shared_from_this();
  reactor_->HoldInLoop();
  RedialInLoop();
  const int64_t until_ns = MonotonicNanos() + std::min(settings_.linger_ns, kTellNs);
  reactor_->AddTimerInLoop(until_ns, [self = telling_] { self->StopTellingInLoop(); });
  return true;
}

void Health::StopTellingInLoop() {
  const std::shared_ptr<Health> self = std::move(telling_);
  telling_ = nullptr;
  if (self == nullptr) return;
  CloseInLoop();
  reactor_->ReleaseInLoop();
}

void Health::ForgetHeardLocked() {
  if (!fd_.valid()) return;
  const int64_t queued = UnackedLocked();
  if (queued < 0) return;
  while (!said_.empty() && said_.front().end + static_cast<uint64_t>(queued) <= sent_bytes_) said_.pop_front();
}

int64_t Health::UnackedLocked() {
  const int queued = QueuedBytes(fd_.get());
  return seals_.sealer == nullptr ? queued : seals_.sealer->Unacked(queued);
}

void Health::TellAgainLocked() {
  sent_bytes_ = 0;
  said_left_ = !said_.empty();
  for (Said& said : said_) {
    outbox_.append(said.frame);
    said.end = outbox_.size();
  }
}

}  // namespace tcpx
