#include "net_socket/health/health_socket.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/dcheck.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/health/tuning.h"
#include "net_socket/message/wire.h"

namespace tcpx {

// Notices that wait for a slow peer. More are dropped: the lanes' own ends remain.
constexpr size_t kOutboxBytesMax = size_t{1} << 20;
constexpr size_t kIdleBytesMax = size_t{64} << 10;
// Kept until the peer's kernel has acknowledged them, or while there is no socket.
constexpr size_t kSaidMax = 16384;
// Reads of 4 KiB in a row: a peer that sends more waits for its next turn.
constexpr int kReadsInARow = 16;

void HealthSocket::MoveToLocked(HealthState to) {
  TCPX_DCHECK(MayMove(state_, to));
  state_ = to;
}

bool HealthSocket::Open(OwnedFd fd, Seals seals, bool heals, bool encrypts) {
  MutexLock lock(mutex_);
  if (state_ == HealthState::kClosed) return false;
  MoveToLocked(HealthState::kUp);
  fd_ = std::move(fd);
  seals_ = std::move(seals);
  reader_ = HealthReader();
  outbox_.clear();
  end_.reset();
  heals_ = heals;
  encrypts_ = encrypts;
  sent_bytes_ = 0;
  send_errno_ = 0;
  may_reset_ = !said_.empty();
  for (Said& said : said_) {
    outbox_.append(said.record);
    said.end = outbox_.size();
  }
  return true;
}

void HealthSocket::Freeze() {
  MutexLock lock(mutex_);
  if (fd_.valid()) shutdown(fd_.get(), SHUT_RDWR);
}

void HealthSocket::LetGo() {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp) return;
  DropLocked(heals_ ? HealthState::kLost : HealthState::kDown);
  end_.reset();
}

void HealthSocket::DropLocked(HealthState to) {
  ForgetHeardLocked();
  MoveToLocked(to);
  reactor_->UnwatchInLoop(fd_.get());
  fd_.reset();
  seals_ = Seals();
  outbox_.clear();
}

bool HealthSocket::Fail(const absl::Status& end) {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp && state_ != HealthState::kLost) return false;
  state_ == HealthState::kUp ? DropLocked(HealthState::kDown) : MoveToLocked(HealthState::kDown);
  end_ = end;
  return true;
}

void HealthSocket::Close() {
  std::vector<HealthNotice> unheard;
  MutexLock lock(mutex_);
  if (state_ == HealthState::kClosed) return;
  if (state_ != HealthState::kUp) return MoveToLocked(HealthState::kClosed);
  // Closing with something unread would reset the socket, and our bye with it.
  for (int i = 0; i < tuning::kRowsMax && ReadLocked(&unheard); ++i) unheard.clear();
  SendLocked(EncodeRecord(FrameKind::kBye, ""));
  DropLocked(HealthState::kClosed);
}

bool HealthSocket::ReadLocked(std::vector<HealthNotice>* notices) {
  char buffer[4096];
  for (int reads = 0; fd_.valid() && !end_.has_value(); ++reads) {
    if (reads == kReadsInARow) return true;
    const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got > 0) {
      heard_ns_ = MonotonicNanos();
      const absl::Status taken = TakeLocked(buffer, static_cast<size_t>(got), notices);
      if (taken.ok()) continue;
      end_ = taken;
      end_errno_ = kGarbage;
      return false;
    }
    // The kernel reports an error to one call only: after a send has met it, a read sees an orderly end.
    end_errno_ = got < 0 ? errno : send_errno_;
    const bool cut = seals_.opener != nullptr && seals_.opener->cut();
    const absl::Status ended = cut ? absl::UnavailableError(kCutRecord) : absl::OkStatus();
    end_ = end_errno_ != 0 ? ErrnoStatus(end_errno_, "the health socket to the peer broke") : ended;
  }
  return false;
}

absl::Status HealthSocket::TakeLocked(const char* data, size_t bytes, std::vector<HealthNotice>* notices) {
  if (seals_.opener == nullptr) return reader_.Take(data, bytes, notices);
  std::string text;
  const bool authentic = seals_.opener->OpenAll(data, bytes, &text);
  seals_.opener->GiveBack();
  const absl::Status taken = reader_.Take(text.data(), text.size(), notices);
  return authentic ? taken : absl::UnavailableError(kNotAuthentic);
}

void HealthSocket::FlushInLoop() {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp) return;
  const bool waited = !outbox_.empty();
  SendLocked("");
  const uint32_t writable = outbox_.empty() ? 0u : static_cast<uint32_t>(EPOLLOUT);
  if (waited) reactor_->ChangeInLoop(fd_.get(), EPOLLIN | EPOLLRDHUP | writable);
}

bool HealthSocket::Say(const std::string& record, bool may_go_unread) {
  MutexLock lock(mutex_);
  const bool up = state_ == HealthState::kUp;
  if (state_ != HealthState::kLost && !CanSayLocked() && !(up && heals_)) return false;
  may_reset_ = may_reset_ || may_go_unread;
  if (heals_) ForgetHeardLocked();  // First: what was heard takes no room.
  if (outbox_.size() > kOutboxBytesMax || said_.size() > kSaidMax) return false;
  if (heals_) said_.push_back({sent_bytes_ + outbox_.size() + record.size(), record});
  if (up) SendSoonLocked(record);
  return CanSayLocked();
}

bool HealthSocket::SayNow(const std::string& record, Passing passing) {
  MutexLock lock(mutex_);
  if (!CanSayLocked()) return false;
  if (outbox_.size() > (passing == Passing::kIdle ? kIdleBytesMax : kOutboxBytesMax)) return false;
  may_reset_ = may_reset_ || passing != Passing::kQuestion;
  SendSoonLocked(record);
  return true;
}

void HealthSocket::SendLocked(const std::string& record) {
  outbox_.append(record);
  while (!outbox_.empty()) {
    iovec piece{&outbox_[0], outbox_.size()};
    const ssize_t sent = SendBy(seals_.sealer.get(), encrypts_, fd_.get(), &piece, 1);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && !IsTransientErrno(errno) && errno != EPIPE && errno != EPROTO) send_errno_ = errno;
    if (sent < 0) return CheckSealerLocked();
    sent_bytes_ += static_cast<uint64_t>(sent);
    outbox_.erase(0, static_cast<size_t>(sent));
  }
}

// What is said of a failure would wait for ever: without this socket each end finds it by itself.
void HealthSocket::CheckSealerLocked() {
  const absl::Status sealed = CheckSealer(encrypts_, seals_.sealer.get());
  if (sealed.ok() || (end_.has_value() && end_errno_ == kGarbage)) return;
  end_ = sealed;
  end_errno_ = kGarbage;
  stir_();
}

void HealthSocket::ForgetHeardLocked() {
  if (!fd_.valid()) return;
  const int queued = QueuedBytes(fd_.get());
  const int64_t unacked = seals_.sealer == nullptr ? queued : seals_.sealer->Unacked(queued);
  if (unacked < 0) return;
  while (!said_.empty() && said_.front().end + static_cast<uint64_t>(unacked) <= sent_bytes_) said_.pop_front();
}

// A peer that has closed resets what it has not read: what it heard of closing, or of who waits for what. Its bye has
// said that all its connections are closed, and their lanes tell how.
HealthSocket::End HealthSocket::end() const {
  MutexLock lock(mutex_);
  End end;
  end.seen = end_.has_value();
  end.orderly = reader_.bye() && (!end.seen || end_->ok() || may_reset_);
  if (!end.seen) return end;
  end.status = *end_;
  end.garbage = end_errno_ == kGarbage;
  end.silent = IsSilentErrno(end_errno_);
  return end;
}

bool HealthSocket::WasReset() const {
  MutexLock lock(mutex_);
  return OverLocked() && !end_->ok() && end_errno_ == ECONNRESET;
}

bool HealthSocket::ReadTcp(LaneTcpInfo* info, std::string* hosts) const {
  MutexLock lock(mutex_);
  if (!CanSayLocked()) return false;
  if (hosts != nullptr) {
    *hosts = LocalAddress(fd_.get()).value_or(SocketAddress()).HostString() + " " +
             PeerAddress(fd_.get()).value_or(SocketAddress()).HostString();
  }
  return ReadLaneTcpInfo(fd_.get(), info);
}

}  // namespace tcpx
