#include "net_socket/receive/record_sender.h"

#include <errno.h>
#include <sys/socket.h>

#include <string>

#include "net_socket/message/wire.h"

namespace tcpx {

absl::Status RecordSender::Send(bool* said) {
  *said = false;
  while (waits()) {
    const ssize_t sent = SendBytes(credits_->data(), credits_->bytes());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0 && errno == EPROTO && CantSeal()) return absl::InternalError(kCantSeal);
    if (sent < 0 && errno != EPIPE && errno != EPROTO) error_ = errno;
    if (sent < 0 && owner_->heals()) break;  // They go on with another socket.
    credits_->Advance(sent < 0 ? credits_->bytes() : static_cast<size_t>(sent));
    *said = true;
  }
  Hold();
  return absl::OkStatus();
}

bool RecordSender::CantSeal() {
  MutexLock lock(mutex_);
  return sealer_ != nullptr && sealer_->broken();
}

ssize_t RecordSender::SendBytes(const char* data, size_t bytes) {
  if (!sealed_) return send(fd_, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  MutexLock lock(mutex_);
  iovec piece{const_cast<char*>(data), bytes};
  return SendBy(sealer_.get(), sealed_, fd_, &piece, 1);
}

void RecordSender::SendError(absl::string_view why) {
  std::string record = EncodeRecord(FrameKind::kError, why.substr(0, kCauseBytesMax));
  iovec piece{&record[0], record.size()};
  // Not into the middle of a credit; the end alone tells the peer too.
  const bool whole = !may_be_cut_.load(std::memory_order_relaxed);
  MutexLock lock(mutex_);  // A new socket's answer goes first, sealed or not.
  if (whole) {
    // What is sealed of a credit and not sent would take the record's bytes for its own.
    if (sealer_ == nullptr || !sealer_->pending()) (void)SendBy(sealer_.get(), sealed_, fd_, &piece, 1);
    sealer_ = nullptr;  // It was the last: what is left of it is nobody's credit.
  }
  shutdown(fd_, SHUT_WR);
}

}  // namespace tcpx
