#include "net_socket/send/express_send_lane.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "common/status.h"
#include "net_socket/send/tuning.h"

namespace tcpx {
namespace {

// A lone message up to this size is copied next to its header and sent as one buffer: about 4 % at 8 bytes
// (docs/experiments.md).
constexpr size_t kLoneBytesMax = 2048;

// A lone frame shorter than this is padded to it. The receiver's kernel acknowledges segments below TCP_MSS_DEFAULT
// (536, linux/tcp.h) at once, inside its system call, whatever TCP_QUICKACK is; that costs 2 us a message.
constexpr size_t kLoneFrameBytesMin = 600;

uint16_t LonePadding(size_t bytes) {
  const size_t frame = kHeaderBytes + bytes;
  return frame < kLoneFrameBytesMin ? static_cast<uint16_t>(kLoneFrameBytesMin - frame) : 0;
}

}  // namespace

ExpressSendLane::ExpressSendLane(LaneOwner* owner, const Settings& settings)
    : owner_(owner),
      settings_(settings),
      stream_(owner,
              {settings.fd, 0, settings.heals ? tuning::kHeldFrames : 0, tuning::kHeldCopyBytes, settings.seals}),
      queue_(kChunkBytesMax, stream_.held()) {}

void ExpressSendLane::Post(SendRequest* request, bool lone) {
  stream_.counts().chunks.Add(std::max<size_t>(1, (request->bytes + kChunkBytesMax - 1) / kChunkBytesMax));
  // Parts of one staged message may wait before it.
  if (lone && queue_.empty() && request->bytes <= kLoneBytesMax) {
    SendLone(request);
    return;
  }
  queue_.Push(request, 0);
  if (lone || queue_.waiting_bytes() >= SendQueue::kGatherBytes) Flush();
}

void ExpressSendLane::SendLone(SendRequest* request) {
  const HeldFrames* const held = stream_.held();
  if (held != nullptr && (stream_.lost() || held->crowded() || held->resending())) {
    queue_.Push(request, 0);
    Flush();
    return;
  }
  const uint16_t padding = settings_.pads_lone_frames ? LonePadding(request->bytes) : 0;
  queue_.Push(request, padding);
  char frame[kHeaderBytes + kLoneBytesMax];
  const size_t frame_bytes = kHeaderBytes + request->bytes + padding;
  std::memcpy(frame, request->header, kHeaderBytes);
  if (request->bytes > 0) std::memcpy(frame + kHeaderBytes, request->data, request->bytes);
  std::memset(frame + kHeaderBytes + request->bytes, 0, padding);
  iovec whole{frame, frame_bytes};
  Took(stream_.seals() ? stream_.Send(&whole, 1) : send(stream_.fd(), frame, frame_bytes, MSG_DONTWAIT | MSG_NOSIGNAL),
       frame_bytes);
}

bool ExpressSendLane::ReadyToFlush() {
  const HeldFrames* const held = stream_.held();
  if (held == nullptr) return true;
  if (held->crowded() || held->awaited()) stream_.LookForAcks();
  if (stream_.lost() || !owner_->open()) return false;
  const int err = stream_.SendAgain();
  if (err != 0) stream_.Broke(err);
  return err == 0;
}

void ExpressSendLane::Flush() {
  if (!ReadyToFlush()) return;
  iovec iov[SendQueue::kIovMax];
  while (!queue_.empty() && owner_->open()) {
    size_t offered = 0;
    const int count = queue_.Gather(iov, &offered);
    if (offered == 0) return;
    if (!Took(stream_.Send(iov, count), offered)) return;
  }
}

bool ExpressSendLane::Took(ssize_t sent, size_t offered) {
  if (sent >= 0) {
    queue_.Advance(static_cast<size_t>(sent));
    stream_.Count(static_cast<size_t>(sent), offered);
    return static_cast<size_t>(sent) == offered;
  }
  if (errno == EINTR) return true;
  stream_.Broke(errno);
  return false;
}

// Nobody tests what was done when it was copied.
absl::Status ExpressSendLane::SendAgainUnasked(bool* more) {
  *more = false;
  if (stream_.lost() || !stream_.held()->resending()) return absl::OkStatus();
  const int err = stream_.SendAgain();
  *more = err == 0 ? stream_.held()->resending() : IsTransientErrno(err);
  return err == EPROTO ? CheckSealer(settings_.seals, stream_.sealer()) : absl::OkStatus();
}

bool ExpressSendLane::MayClose() {
  const HeldFrames* const held = stream_.held();
  if (!held->empty()) stream_.LookForAcks();
  Flush();
  return held->empty() || (!stream_.lost() && !held->resending() && !stream_.Died());
}

}  // namespace tcpx
