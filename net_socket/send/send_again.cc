#include "net_socket/send/send_again.h"

#include <errno.h>
#include <sys/uio.h>

#include <algorithm>
#include <utility>

#include "common/socket.h"
#include "net_socket/seal/sealer.h"
#include "net_socket/send/held_frames.h"
#include "net_socket/send/tuning.h"

namespace tcpx {

namespace {

constexpr int kIovMax = 128;

}  // namespace

int SendAgain(int fd, HeldFrames* held, Sealer* sealer, bool must) {
  while (held->resending()) {
    iovec iov[kIovMax];
    const ssize_t sent = SendBy(sealer, must, fd, iov, held->GatherAgain(iov, kIovMax));
    if (sent >= 0) {
      held->SentAgain(static_cast<size_t>(sent));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// What is sealed and not sent would be taken for what comes after it.
void PeerTookOf(uint64_t taken, HeldFrames* held, Sealer* sealer) {
  if (held->PeerTook(taken) && sealer != nullptr && sealer->pending()) sealer->Stop();
}

int64_t QueuedOf(int fd, Sealer* sealer) {
  const int queued = QueuedBytes(fd);
  return sealer == nullptr ? queued : sealer->Unacked(queued);
}

int64_t AckLooks::Look(int fd, HeldFrames* held, int64_t now, Sealer* sealer) {
  if (held->empty()) return 0;
  held->Acked(QueuedOf(fd, sealer));
  const bool moved = held->acked() != std::exchange(acked_, held->acked());
  wait_ns_ = moved ? tuning::kAckLookNs : std::clamp(2 * wait_ns_, tuning::kAckLookNs, tuning::kAckLookMaxNs);
  return held->empty() ? 0 : now + wait_ns_;
}

}  // namespace tcpx
