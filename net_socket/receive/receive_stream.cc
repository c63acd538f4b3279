#include "net_socket/receive/receive_stream.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/socket.h"
#include "common/status.h"
#include "net_socket/message/failure_kind.h"

namespace tcpx {
namespace {

// Copies the first of `bytes` at `from` into the places, as far as they have room. Returns how many.
size_t Scatter(const char* from, size_t bytes, const iovec* iov, int count) {
  size_t copied = 0;
  for (int i = 0; i < count && copied < bytes; ++i) {
    const size_t part = std::min(iov[i].iov_len, bytes - copied);
    std::memcpy(iov[i].iov_base, from + copied, part);
    copied += part;
  }
  return copied;
}

}  // namespace

bool StreamIntake::Freeze(int fd) {
  left_.erase(0, read_);
  read_ = 0;
  left_.append(opened_, opened_bytes_);
  opened_bytes_ = 0;
  const size_t before = left_.size();
  bool authentic = true;
  if (!sealed_) {
    FreezeSocket(fd, &left_);
  } else {
    std::string rest;
    FreezeSocket(fd, &rest);
    authentic = opener_ == nullptr ? rest.empty() : opener_->OpenAll(rest.data(), rest.size(), &left_);
    if (opener_ != nullptr) opener_->GiveBack();
  }
  taken_ += left_.size() - before;
  NoteHeld();
  return authentic;
}

void StreamIntake::Forget() {
  opened_bytes_ = 0;
  opener_ = nullptr;
  NoteHeld();
}

size_t StreamIntake::ReadLeft(const iovec* iov, int count) {
  if (left_.empty()) return 0;
  const size_t copied = Scatter(left_.data() + read_, left_.size() - read_, iov, count);
  read_ += copied;
  if (read_ == left_.size()) {
    left_ = std::string();
    read_ = 0;
  }
  NoteHeld();
  return copied;
}

void StreamIntake::NoteHeld() {
  holds_ = read_ < left_.size() || opened_bytes_ > 0 || (opener_ != nullptr && opener_->next() > 0);
}

ssize_t StreamIntake::ReadHeld(const iovec* iov, int count) {
  const size_t left = ReadLeft(iov, count);
  return left > 0 || !sealed_ || count == 0 ? static_cast<ssize_t>(left) : Opened(iov, count);
}

ssize_t StreamIntake::Receive(int fd, iovec* iov, int count) {
  const size_t left = ReadLeft(iov, count);
  if (left > 0) return static_cast<ssize_t>(left);
  if (sealed_) {
    const ssize_t opened = ReceiveSealed(fd, iov, count);
    NoteHeld();
    return opened;
  }
  const ssize_t got = ReceiveNow(fd, iov, count);
  if (got > 0) Took(static_cast<size_t>(got));
  return got;
}

iovec StreamIntake::Room(size_t plain) {
  constexpr size_t kLittleBytes = 256;  // the next header's record, and a little more
  iovec room = opener_->Room(plain == 0);
  const size_t wanted = plain + kSealBytes * (plain / kSealedBytesMax + 2) + kLittleBytes;
  room.iov_len = std::min(room.iov_len, std::max(wanted, opener_->missing()));
  return room;
}

size_t StreamIntake::ReadOpened(const iovec* iov, int count) {
  const size_t copied = Scatter(opened_, opened_bytes_, iov, count);
  opened_ += copied;
  opened_bytes_ -= copied;
  return copied;
}

// Records that fit a place are opened there, and copied nowhere.
ssize_t StreamIntake::OpenStraight(const iovec* iov, int count) {
  size_t opened = 0;
  for (int i = 0; i < count; ++i) {
    size_t filled = 0;
    while (const size_t bytes = opener_->next()) {
      if (bytes > iov[i].iov_len - filled) break;
      // What was opened before counts; the fault stays.
      if (!opener_->Open(static_cast<char*>(iov[i].iov_base) + filled)) return opened > 0 ? Counted(opened) : -1;
      filled += bytes;
      opened += bytes;
    }
    if (filled < iov[i].iov_len) break;
  }
  return Counted(opened);
}

ssize_t StreamIntake::Opened(const iovec* iov, int count) {
  if (opener_ == nullptr) return -1;
  if (opened_bytes_ > 0) return static_cast<ssize_t>(ReadOpened(iov, count));
  const ssize_t straight = OpenStraight(iov, count);
  if (straight != 0) return straight;
  const size_t bytes = opener_->next();
  if (bytes == 0) return opener_->broken() ? -1 : 0;
  opened_ = opener_->OpenInPlace();
  if (opened_ == nullptr) return -1;
  opened_bytes_ = bytes;
  taken_ += bytes;
  return static_cast<ssize_t>(ReadOpened(iov, count));
}

ssize_t StreamIntake::ReceiveSealed(int fd, iovec* iov, int count) {
  for (;;) {
    const ssize_t opened = Opened(iov, count);
    if (opened > 0) return opened;
    if (opened < 0) {
      errno = EBADMSG;
      return -1;
    }
    size_t places = 0;
    for (int i = 0; i < count; ++i) places += iov[i].iov_len;
    iovec room = Room(places);
    const ssize_t got = ReceiveNow(fd, &room, 1);
    if (got > 0) {
      opener_->Took(static_cast<size_t>(got));
      continue;
    }
    const int err = errno;
    opener_->GiveBack();
    errno = err;
    return got;
  }
}

// One that was opened and never used: its dialler may have given it up before it was answered. Lane 0 is never closed.
bool ReceiveStream::MayBeClosed() const {
  return lane() > 0 && (frames_.closes() || (settings_.opened && intake_.taken() == 0));
}

void ReceiveStream::Broke(int err) {
  if (err == EBADMSG) return owner_->FailLane(FailureOf(FailureKind::kForged, kNotAuthentic), lane());
  const absl::Status why =
      err == 0 ? absl::UnavailableError("the peer closed the connection") : ErrnoStatus(err, "receive");
  if (MayBeClosed() && owner_->CloseLane(lane())) {
    lost_ = drops_socket_ = true;
    lost_by_ = 0;
  } else if (owner_->LoseLane(why, lane())) {
    lost_ = true;
    lost_by_ = err;
  } else if (err == 0 || owner_->peer_left()) {
    if (intake_.cut()) return owner_->FailLane(absl::UnavailableError(kCutRecord), lane());
    frames_.End();
    Check();
    ended_.store(true, std::memory_order_release);
  } else {
    owner_->FailLane(why, lane());
  }
}

bool ReceiveStream::StillLost() {
  if (owner_->heals()) return true;
  lost_ = false;
  Broke(lost_by_);
  return true;
}

absl::Status ReceiveStream::Replace(SocketOffer offer) {
  const bool authentic = intake_.Freeze(settings_.fd);
  absl::Status replaced = ReplaceSocket(settings_.fd, offer.fd);
  if (!authentic) replaced = FailureOf(FailureKind::kForged, kNotAuthentic);
  if (offer.seals != nullptr) intake_.OpenBy(std::move(offer.seals->opener));
  lost_ = drops_socket_ = false;
  owner_->LaneBack(lane());
  offer.done(intake_.taken());
  return replaced;
}

// What is left of a socket that has ended would stay in memory, here and at the peer.
void ReceiveStream::DropSocket() {
  drops_socket_ = false;
  intake_.Forget();
  const auto none = StreamSocket(AF_INET);
  if (none.ok()) (void)CloseSocket(settings_.fd, none->get());
}

// The kernel takes a socket that has answered for one that will answer again, and holds acknowledgements back for that:
// the sender then takes up to 40 ms for the round trip. A lane only answers its hello, or carries credits.
void ReceiveStream::LeaveAnswering() {
  if (settings_.acks_at_once) (void)SetQuickAck(settings_.fd, 1);
}

}  // namespace tcpx
