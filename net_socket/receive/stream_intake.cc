#include "net_socket/receive/stream_intake.h"

#include <algorithm>
#include <cstring>

#include "common/socket.h"
#include "net_socket/engine/socket_swap.h"

namespace tcpx {

void StreamIntake::Freeze(int fd) {
  left_.erase(0, read_);
  read_ = 0;
  const size_t before = left_.size();
  FreezeSocket(fd, &left_);
  taken_ += left_.size() - before;
}

size_t StreamIntake::ReadLeft(const iovec* iov, int count) {
  size_t copied = 0;
  for (int i = 0; i < count && read_ < left_.size(); ++i) {
    const size_t part = std::min(iov[i].iov_len, left_.size() - read_);
    std::memcpy(iov[i].iov_base, left_.data() + read_, part);
    read_ += part;
    copied += part;
  }
  if (copied > 0 && read_ == left_.size()) {
    left_ = std::string();
    read_ = 0;
  }
  return copied;
}

ssize_t StreamIntake::Receive(int fd, iovec* iov, int count) {
  const size_t left = left_.empty() ? 0 : ReadLeft(iov, count);
  if (left > 0) return static_cast<ssize_t>(left);
  const ssize_t got = ReceiveNow(fd, iov, count);
  if (got > 0) Took(static_cast<size_t>(got));
  return got;
}

}  // namespace tcpx
