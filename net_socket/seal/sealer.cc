#include "net_socket/seal/sealer.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/dcheck.h"
#include "common/socket.h"

namespace tcpx {
namespace {

// A piece of this size or more begins a record of its own, which its receiver may open straight to its place; shorter
// ones share a record.
constexpr size_t kOwnRecordBytes = 8 * 1024;
constexpr size_t kSharedRecordBytes = 16 * 1024;

// How much of the pieces, from `skip` on, the next record takes; 0: nothing is left.
size_t NextRecord(const iovec* pieces, int count, size_t skip) {
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    if (skip >= pieces[i].iov_len) {
      skip -= pieces[i].iov_len;
      continue;
    }
    const size_t piece = pieces[i].iov_len - skip;
    skip = 0;
    if (piece >= kOwnRecordBytes) return bytes > 0 ? bytes : std::min(piece, kSealedBytesMax);
    bytes += piece;
    if (bytes >= kSharedRecordBytes) return bytes;
  }
  return bytes;
}

// Where the bytes lie in one piece; null: in several, and `out` gets them.
const char* Flatten(const iovec* pieces, int count, size_t skip, size_t bytes, char* out) {
  size_t copied = 0;
  for (int i = 0; i < count && copied < bytes; ++i) {
    if (skip >= pieces[i].iov_len) {
      skip -= pieces[i].iov_len;
      continue;
    }
    const char* const from = static_cast<const char*>(pieces[i].iov_base) + skip;
    const size_t part = std::min(pieces[i].iov_len - skip, bytes - copied);
    if (part == bytes) return from;
    std::memcpy(out + copied, from, part);
    copied += part;
    skip = 0;
  }
  return out;
}

size_t Sum(const iovec* pieces, int count) {
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

}  // namespace

void RecordAcks::Ended(size_t sealed_after, size_t plain) {
  plain_taken_ += plain;
  NoteEnd({sealed_taken_ - sealed_after, plain_taken_});
}

void RecordAcks::NoteEnd(const RecordEnd& end) {
  if (ends_.empty()) return;
  if (count_ < kRecordEndsMax) ++count_;
  ends_[(first_ + count_ - 1) % kRecordEndsMax] = end;
}

int64_t RecordAcks::Unacked(int64_t queued) {
  if (queued < 0) return queued;
  if (ends_.empty()) {
    ends_.resize(kRecordEndsMax);
    NoteEnd({sealed_taken_, plain_taken_});  // All that was sent before counts as one.
  }
  const uint64_t held = std::min(static_cast<uint64_t>(queued), sealed_taken_);
  while (count_ > 0 && ends_[first_].sealed <= sealed_taken_ - held) {
    plain_acked_ = ends_[first_].plain;
    sealed_acked_ = ends_[first_].sealed;
    first_ = (first_ + 1) % kRecordEndsMax;
    --count_;
  }
  return static_cast<int64_t>(plain_taken_ - plain_acked_);
}

int64_t RecordAcks::UnackedAbout(int64_t queued) {
  if (Unacked(queued) < 0) return queued;
  uint64_t acked = plain_acked_;
  const uint64_t sealed = sealed_taken_ - std::min(static_cast<uint64_t>(queued), sealed_taken_);
  if (count_ > 0 && sealed > sealed_acked_) {
    acked += std::min(ends_[first_].plain - plain_acked_, sealed - sealed_acked_);
  }
  about_acked_ = std::max(about_acked_, acked);
  return static_cast<int64_t>(plain_taken_ - about_acked_);
}

bool Sealer::SealRecord(const iovec* pieces, int count, size_t skip, size_t bytes) {
  char* const record = place_ + end_;
  const uint32_t length = static_cast<uint32_t>(bytes);
  std::memcpy(record, &length, kSealedHeaderBytes);
  char* const body = record + kSealedHeaderBytes;
  AeadNonce nonce;
  Aead* const aead = keys_.Next(&nonce);
  const char* const text = Flatten(pieces, count, skip, bytes, body);
  if (aead == nullptr || !aead->Seal(nonce, record, kSealedHeaderBytes, text, bytes, body)) {
    broken_ = true;
    begin_ = end_ = 0;
    return false;
  }
  end_ += bytes + kSealBytes;
  return true;
}

bool Sealer::SealInto(char* room, size_t bytes, const iovec* pieces, int count, size_t skip) {
  TCPX_DCHECK(!pending());
  place_ = room;
  begin_ = end_ = 0;
  ends_.clear();
  first_end_ = returned_ = 0;
  size_t plain = 0;
  while (!broken_ && ends_.size() < kRecordEndsMax) {
    const size_t next = NextRecord(pieces, count, skip + plain);
    if (next == 0 || end_ + next + kSealBytes > bytes) break;
    if (!SealRecord(pieces, count, skip + plain, next)) return false;
    plain += next;
    ends_.push_back({end_, plain});
  }
  return !broken_;
}

bool Sealer::Seal(const iovec* pieces, int count, size_t skip) {
  if (buffer_ == nullptr) buffer_ = buffers_->Take();
  return SealInto(buffer_.get(), kSealBufferBytes, pieces, count, skip);
}

size_t Sealer::Took(size_t bytes) {
  TCPX_DCHECK(bytes <= end_ - begin_);
  begin_ += bytes;
  acks_.Took(bytes);
  size_t plain = returned_;
  while (first_end_ < ends_.size() && ends_[first_end_].sealed <= begin_) {
    const RecordEnd& end = ends_[first_end_++];
    acks_.Ended(begin_ - end.sealed, end.plain - plain);
    plain = end.plain;
  }
  const size_t taken = plain - std::exchange(returned_, plain);
  if (pending()) return taken;
  begin_ = end_ = 0;
  if (buffer_ != nullptr) buffers_->Give(std::move(buffer_));
  return taken;
}

ssize_t Sealer::Send(int fd, const iovec* pieces, int count) {
  const size_t all = Sum(pieces, count);
  size_t taken = 0;
  while (!stopped_ && (taken < all || pending())) {
    if (!pending() && !Seal(pieces, count, taken)) {
      errno = EPROTO;
      return -1;
    }
    const iovec piece = rest();
    const ssize_t sent = send(fd, piece.iov_base, piece.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && taken == 0) return -1;
    if (sent < 0) break;
    taken += Took(static_cast<size_t>(sent));
    if (pending()) break;
  }
  // A caller that offers less than is pending must not count what it has not offered.
  if (taken > 0 || all == 0) return static_cast<ssize_t>(std::min(taken, all));
  errno = EAGAIN;
  return -1;
}

ssize_t SendBy(Sealer* sealer, bool must, int fd, iovec* pieces, int count) {
  if (sealer != nullptr) return sealer->Send(fd, pieces, count);
  if (must) {
    errno = EPROTO;
    return -1;
  }
  const msghdr message = MessageOf(pieces, count);
  return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace tcpx
