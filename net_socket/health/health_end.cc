// How the end of a health socket is told.
#include <errno.h>

#include "common/clock.h"
#include "net_socket/health/health.h"
#include "net_socket/health/health_hub.h"

namespace tcpx {
namespace {

constexpr int64_t kLanesFallNs = 50 * kMillisecond;

}  // namespace

bool Health::PeerVanished() {
  MutexLock lock(mutex_);
  const bool over = !heals_ || state_ == HealthState::kDown || state_ == HealthState::kClosed;
  return over && end_.has_value() && end_->ok() && !reader_.bye();
}

bool Health::WasReset() {
  MutexLock lock(mutex_);
  const bool over = !heals_ || state_ == HealthState::kDown || state_ == HealthState::kClosed;
  return over && end_.has_value() && !end_->ok() && end_errno_ == ECONNRESET && !reader_.bye();
}

// A peer that has closed resets what it has not read: what it was told of closing, or of who waits for what. Its bye has
// said that all its connections are closed, and their lanes tell how.
bool Health::OrderlyLocked() { return reader_.bye() && (!end_.has_value() || end_->ok() || said_left_); }

void Health::DropSocketLocked(HealthState to) {
  ForgetHeardLocked();
  MoveToLocked(to);
  reactor_->UnwatchInLoop(fd_.get());
  fd_.reset();
  seals_ = Seals();
  outbox_.clear();
}

void Health::EndInLoop() {
  const bool heals = MayHealInLoop();
  {
    MutexLock lock(mutex_);
    if (state_ == HealthState::kUp) DropSocketLocked(heals ? HealthState::kLost : HealthState::kDown);
  }
  heals ? LostInLoop() : TellEndInLoop();
}

std::vector<Link<HealthUser>> Health::Links() {
  std::vector<Link<HealthUser>> links;
  MutexLock lock(mutex_);
  for (auto& [id, member] : members_) {
    if (member.link.any()) links.push_back(member.link);
  }
  return links;
}

void Health::TellLinks(const absl::Status& end) {
  for (auto& link : Links()) {
    link.With([&end](HealthUser* comm) { comm->PeerLost(end); });
  }
}

void Health::TellEndInLoop() {
  absl::Status end;
  bool orderly = false;
  bool ended = false;
  {
    MutexLock lock(mutex_);
    end = end_.value_or(absl::OkStatus());
    ended = end_.has_value() && end.ok();
    orderly = OrderlyLocked();
  }
  hub_->ForgetInLoop(this);
  if (orderly) return;
  // Its lanes may fall a moment later: then it was the end of a process.
  if (WasReset()) {
    reactor_->AddTimerInLoop(MonotonicNanos() + kLanesFallNs, [weak = weak_from_this(), end] {
      if (const auto self = weak.lock()) self->TellLinks(end);
    });
    return;
  }
  TellLinks(end);
  if (ended) hub_->DiedInLoop(*this, false);
}

}  // namespace tcpx
