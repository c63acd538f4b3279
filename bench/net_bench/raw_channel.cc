#include <errno.h>
#include <sys/socket.h>

#include <utility>

#include "bench/net_bench/raw_link.h"
#include "common/status.h"

namespace tcpx {
namespace bench {

RawChannel::RawChannel(bool sends, std::vector<int> fds) : sends_(sends), fds_(std::move(fds)) {
  for (size_t i = 0; i < fds_.size(); ++i) next_.push_back(i);
}

Step RawChannel::Post(uint8_t* data, size_t bytes) {
  if (posted_ - done_ == kPlaces) return Step::kAgain;
  const size_t socket = posted_ % fds_.size();
  At(posted_) = {data, bytes, 0};
  ++posted_;
  // A receive has nothing to gain from an early look; a send goes out at once, unless it would overtake.
  if (sends_ && !Pump(socket)) return Step::kFailed;
  return Step::kDone;
}

Step RawChannel::Test(size_t* bytes) {
  for (size_t socket = 0; socket < fds_.size(); ++socket) {
    if (!Pump(socket)) return Step::kFailed;
  }
  if (!Complete(done_)) return Step::kAgain;
  *bytes = At(done_).bytes;
  ++done_;
  return Step::kDone;
}

bool RawChannel::Pump(size_t socket) {
  uint64_t& number = next_[socket];
  while (number < posted_ && !Complete(number)) {
    bool blocked = false;
    if (!MoveSome(fds_[socket], &At(number), &blocked)) return false;
    if (blocked) return true;
    if (!Complete(number)) continue;
    number += fds_.size();
    if (!sends_) return true;  // One message per call, as for a plugin that is tested for its oldest request.
  }
  // A zero-byte message is complete from the start.
  while (number < posted_ && Complete(number)) number += fds_.size();
  return true;
}

bool RawChannel::MoveSome(int fd, Message* message, bool* blocked) {
  uint8_t* at = message->data + message->moved;
  const size_t left = message->bytes - message->moved;
  const ssize_t moved = sends_ ? send(fd, at, left, MSG_NOSIGNAL) : recv(fd, at, left, 0);
  if (moved > 0) {
    message->moved += static_cast<size_t>(moved);
    return true;
  }
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) {
    *blocked = true;
    return true;
  }
  failure_ = moved == 0 ? "the peer closed the socket" : ErrnoText(errno);
  return false;
}

}  // namespace bench
}  // namespace tcpx
