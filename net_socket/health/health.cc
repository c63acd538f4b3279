#include "net_socket/health/health.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "common/dcheck.h"
#include "common/log.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/health/health_hub.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

// Notices that wait for a slow peer. More are dropped: the lanes' own ends remain.
constexpr size_t kOutboxBytesMax = size_t{1} << 20;
// Kept until the peer's kernel has acknowledged them, or while there is no socket.
constexpr size_t kSaidMax = 16384;
// Kept for a connection that is expected: an honest peer says that it has parted or failed, and that it is closed.
constexpr size_t kEarlyNoticesMax = 2;

constexpr int kGarbage = -1;
// Of 4 KiB each: a peer that says more waits for its next turn.
constexpr int kReadsInARow = 16;
// So many rows are more than a socket holds: all that was there when it was asked.
constexpr int kRowsMax = 256;

}  // namespace

void Health::MoveToLocked(HealthState to) {
  TCPX_DCHECK(MayMove(state_, to));
  state_ = to;
}

HealthState Health::state_in_loop() {
  MutexLock lock(mutex_);
  return state_;
}

void Health::UnuseInLoop() {
  if (--uses_ > 0 || !dialled_) return;
  const std::shared_ptr<Health> self = shared_from_this();
  if (!StaysToTellInLoop()) CloseInLoop();
  hub_->ForgetInLoop(this);
}

void Health::AwaitInLoop(Waiter* waiter) {
  if (up_in_loop()) {
    waiter->HealthUpInLoop();
    return;
  }
  waiters_.push_back(waiter);
  if (dialler_ != nullptr || state_in_loop() == HealthState::kLost) return;
  dialler_ = waiter;
  waiter->DialHealthInLoop();
}

void Health::GiveUpInLoop(Waiter* waiter) {
  waiters_.erase(std::remove(waiters_.begin(), waiters_.end(), waiter), waiters_.end());
  if (dialler_ != waiter) return;
  dialler_ = waiters_.empty() ? nullptr : waiters_.front();
  if (dialler_ != nullptr) dialler_->DialHealthInLoop();
}

void Health::UpInLoop(OwnedFd fd, const HealthSettings& settings, Seals seals) {
  const absl::Status sealed = CheckSealed(settings.encrypts, &seals);
  if (!sealed.ok()) {  // Whoever waits for it gives up in time.
    TCPX_WARN("a health socket: %s", std::string(sealed.message()));
    return;
  }
  const absl::Status alive = SetKeepAlive(fd.get(), settings.peer_timeout_ns);
  if (!alive.ok()) TCPX_INFO("%s; a peer host that vanishes is not noticed", std::string(alive.message()));
  const int number = fd.get();
  settings_ = settings;
  peer_ = PeerAddress(number).value_or(SocketAddress()).ToString();
  TCPX_TRACE("health socket %s %s %s", LocalAddress(number).value_or(SocketAddress()).ToString(),
             dialled_ ? "to" : "from", peer_);
  const std::shared_ptr<Health> self = shared_from_this();
  HaltRedialler();
  if (!LetGoInLoop()) return;
  const bool back = state_in_loop() == HealthState::kLost;
  {
    MutexLock lock(mutex_);
    if (state_ == HealthState::kClosed) return;
    MoveToLocked(HealthState::kUp);
    fd_ = std::move(fd);
    seals_ = std::move(seals);
    reader_ = HealthReader();
    outbox_.clear();
    end_.reset();
    heals_ = settings.heals;
    encrypts_ = settings.encrypts;
    TellAgainLocked();
    if (dialled_) IntroduceLocked();
  }
  if (!reactor_->WatchInLoop(number, EPOLLIN | EPOLLRDHUP, this).ok()) EndInLoop();
  FlushInLoop();
  dialler_ = nullptr;
  for (Waiter* waiter : std::exchange(waiters_, {})) waiter->HealthUpInLoop();
  if (back) BackInLoop();
  BeginClockInLoop();
  if (settings.heals && dialled_) LookSoonInLoop();
}

// From here on nothing that comes by the old socket is acknowledged: what was, is heard.
bool Health::LetGoInLoop() {
  {
    MutexLock lock(mutex_);
    if (state_ != HealthState::kUp) return true;
    if (heals_ && !dialled_) shutdown(fd_.get(), SHUT_RDWR);
  }
  Poll();
  bool garbled = false;
  {
    MutexLock lock(mutex_);
    if (state_ != HealthState::kUp) return true;
    garbled = GarbledLocked();
    if (!garbled) {
      DropSocketLocked(heals_ ? HealthState::kLost : HealthState::kDown);
      end_.reset();
      if (!heals_) return true;
    }
  }
  garbled ? EndInLoop() : AwaitAnotherInLoop();
  return !garbled;
}

bool Health::GarbledLocked() { return end_.has_value() && end_errno_ == kGarbage; }

void Health::CloseInLoop() {
  std::vector<HealthNotice> unheard;
  HaltRedialler();
  MutexLock lock(mutex_);
  const HealthState was = state_;
  if (was != HealthState::kClosed) MoveToLocked(HealthState::kClosed);
  if (was != HealthState::kUp) return;
  // Closing with something unread would reset the socket, and our bye with it.
  for (int i = 0; i < kRowsMax && ReadLocked(&unheard); ++i) unheard.clear();
  SendLocked(EncodeRecord(FrameKind::kBye, ""));
  reactor_->UnwatchInLoop(fd_.get());
  fd_.reset();
  seals_ = Seals();
}

void Health::ExpectInLoop(const ConnectionId& id) {
  UseInLoop();
  MutexLock lock(mutex_);
  members_[id];
}

void Health::JoinInLoop(const ConnectionId& id, std::shared_ptr<CommLink> link,
                        std::shared_ptr<HealthRedialler> redialler) {
  std::vector<HealthNotice> notices;
  std::optional<absl::Status> end;
  bool expected = false;
  bool lost = false;
  {
    MutexLock lock(mutex_);
    expected = members_.contains(id);
    Member& member = members_[id];
    member.link = link;
    member.redialler = std::move(redialler);
    notices.swap(member.notices);
    lost = state_ == HealthState::kLost;
    if (!lost && state_ != HealthState::kUp && end_.has_value() && !OrderlyLocked()) end = end_;
  }
  if (!expected) UseInLoop();
  Deliver(notices);
  if (end.has_value()) link->With([&end](Watched* comm) { TellEnd(comm, *end); });
  if (lost) link->With([](Watched* comm) { comm->HealthLost(); });
}

void Health::LeaveInLoop(const ConnectionId& id) {
  {
    MutexLock lock(mutex_);
    const auto found = members_.find(id);
    if (found != members_.end()) {
      if (found->second.redialler != nullptr) last_to_leave_ = std::move(found->second.redialler);
      members_.erase(found);
    }
  }
  UnuseInLoop();
}

void Health::OnEvents(uint32_t) {
  const std::shared_ptr<Health> self = shared_from_this();
  FlushInLoop();
  (void)HearSome();  // What is left is another event.
  bool ended = false;
  {
    MutexLock lock(mutex_);
    ended = end_.has_value() && state_ != HealthState::kLost;
  }
  if (ended) EndInLoop();
}

bool Health::ReadLocked(std::vector<HealthNotice>* notices) {
  char buffer[4096];
  for (int reads = 0; fd_.valid() && !end_.has_value(); ++reads) {
    if (reads == kReadsInARow) return true;
    const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got > 0) {
      heard_ns_.store(MonotonicNanos(), std::memory_order_relaxed);
      const absl::Status taken = TakeLocked(buffer, static_cast<size_t>(got), notices);
      if (!taken.ok()) end_ = taken;
      if (!taken.ok()) end_errno_ = kGarbage;
      continue;
    }
    end_errno_ = got < 0 ? errno : 0;
    const bool cut = seals_.opener != nullptr && seals_.opener->cut();
    const absl::Status ended = cut ? absl::UnavailableError(kCutRecord) : absl::OkStatus();
    end_ = got < 0 ? ErrnoStatus(errno, "the health socket to the peer broke") : ended;
  }
  return false;
}

bool Health::HearSome() {
  std::vector<HealthNotice> notices;
  bool more = false;
  {
    MutexLock lock(mutex_);
    more = ReadLocked(&notices);
  }
  Deliver(notices);
  return more;
}

void Health::Poll() {
  for (int i = 0; i < kRowsMax && HearSome(); ++i) {
  }
  MutexLock lock(mutex_);
  if (state_ == HealthState::kUp && GarbledLocked()) TellEndSoon();
}

void Health::Ask() {
  Poll();
  MutexLock lock(mutex_);
  if (state_ == HealthState::kUp && end_.has_value() && !GarbledLocked()) TellEndSoon();
}

void Health::TellEndSoon() {
  reactor_->Post([self = shared_from_this()] {
    if (self->up_in_loop()) self->OnEvents(0);
  });
}

std::shared_ptr<CommLink> Health::HearerOfLocked(const HealthNotice& notice) {
  if (!notice.waits.empty()) HearWaitsLocked(notice);
  auto found = members_.find(notice.connection);
  if (found == members_.end()) return nullptr;
  Member& member = found->second;
  if (member.link == nullptr && notice.waits.empty() && member.notices.size() < kEarlyNoticesMax)
    member.notices.push_back(notice);
  return member.link;
}

void Health::Deliver(const std::vector<HealthNotice>& notices) {
  for (const HealthNotice& notice : notices) {
    if (!notice.clock.empty()) {
      HearClock(notice.clock);
      continue;
    }
    std::shared_ptr<CommLink> link;
    {
      MutexLock lock(mutex_);
      link = HearerOfLocked(notice);
    }
    if (link == nullptr) continue;
    link->With([&notice](Watched* comm) {
      if (!notice.waits.empty()) {
        comm->PeerSaysWaits(notice.waits);
      } else if (notice.silent >= 0) {
        comm->PeerIsUnheard(notice.silent);
      } else if (notice.left) {
        comm->PeerLeft(notice.taken);
      } else if (notice.parting) {
        comm->PeerParted(notice.cause);
      } else {
        comm->PeerFailed(notice.cause);
      }
    });
  }
}

void Health::SendLocked(const std::string& frame) {
  outbox_.append(frame);
  while (!outbox_.empty()) {
    iovec piece{&outbox_[0], outbox_.size()};
    const ssize_t sent = SendBy(seals_.sealer.get(), encrypts_, fd_.get(), &piece, 1);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return CheckSealerLocked();
    sent_bytes_ += static_cast<uint64_t>(sent);
    outbox_.erase(0, static_cast<size_t>(sent));
  }
}

// What is said of a failure would wait for ever: without this socket each end finds it by itself.
void Health::CheckSealerLocked() {
  const absl::Status sealed = CheckSealer(encrypts_, seals_.sealer.get());
  if (sealed.ok() || GarbledLocked()) return;
  end_ = sealed;
  end_errno_ = kGarbage;
  TellEndSoon();
}

bool Health::Notify(const ConnectionId& id, const std::string& cause, bool parting) {
  MutexLock lock(mutex_);
  if (!TellsLocked()) return false;
  SayLocked(FailureNotice(id, cause, parting));
  return state_ == HealthState::kUp && !end_.has_value();
}

void Health::NotifyLeft(const ConnectionId& id, const std::vector<uint64_t>& taken) {
  MutexLock lock(mutex_);
  if (!TellsLocked()) return;
  said_left_ = true;
  SayLocked(LeftNotice(id, taken));
}

bool Health::AskForAnother(const ConnectionId& id, int lane) {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp || end_.has_value() || outbox_.size() > kOutboxBytesMax) return false;
  SendNowLocked(SilentNotice(id, lane));
  return true;
}

void Health::SayLocked(const std::string& frame) {
  if (outbox_.size() > kOutboxBytesMax || said_.size() > kSaidMax) return;
  if (heals_) {
    ForgetHeardLocked();
    said_.push_back({sent_bytes_ + outbox_.size() + frame.size(), frame});
  }
  if (state_ == HealthState::kUp) SendNowLocked(frame);
}

void Health::SendNowLocked(const std::string& frame) {
  SendLocked(frame);
  if (outbox_.empty()) return;
  reactor_->Post([self = shared_from_this()] { self->FlushInLoop(); });
}

void Health::FlushInLoop() {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp) return;
  const bool waited = !outbox_.empty();
  SendLocked("");
  const uint32_t writable = outbox_.empty() ? 0u : static_cast<uint32_t>(EPOLLOUT);
  if (waited) reactor_->ChangeInLoop(fd_.get(), EPOLLIN | EPOLLRDHUP | writable);
}

}  // namespace tcpx
