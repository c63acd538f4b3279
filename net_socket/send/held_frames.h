// held_frames.h: what a lane has sent and its peer may not have yet, so that another socket can go on in the middle.
//
// Purpose: a lane is a stream of bytes, which outlives its sockets. Each frame is kept from its first byte on until the
//          peer's kernel has acknowledged its last. A request hears of it then; or at once, where its payload fits the
//          room for copies. After a loss the peer says how much of the stream it has taken, and what lies after that is
//          sent again.
// Use:     held.Begin(...);  held.Sent(n) ...;  held.Finish(copy);  held.Acked(QueuedBytes(fd)) now and then
//          after a loss: held.Rewind(taken); while (held.resending()) { GatherAgain, SentAgain }
// Threads: one at a time. Knows no socket; allocates in its constructor only.
// Lifetime: borrows requests and their payload until they have heard of it.
// Units: bytes; positions count the bytes of the stream. Errors: Rewind.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net_socket/message/request.h"
#include "net_socket/message/wire.h"

namespace tcpx {

// What is wrong where Rewind says no.
inline constexpr char kLostAcknowledged[] =
    "the peer does not have what its kernel has acknowledged: does something between, a proxy or a load balancer, end "
    "TCP connections? TCPX_HEAL can't work through it";

// What follows a payload, and means nothing.
inline constexpr char kPadding[UINT16_MAX] = {};

// Adds to what a call sends the part of a piece that lies after the first *skip and within the next *left bytes.
inline void AppendPart(const char* data, size_t bytes, uint64_t* skip, uint64_t* left, iovec* iov, int* count) {
  if (*skip >= bytes) {
    *skip -= bytes;
    return;
  }
  const size_t part = static_cast<size_t>(std::min<uint64_t>(bytes - *skip, *left));
  if (part > 0) iov[(*count)++] = {const_cast<char*>(data + *skip), part};
  *skip = 0;
  *left -= part;
}

class HeldFrames {
 public:
  struct Payload {
    const char* data = nullptr;
    size_t bytes = 0;
    uint16_t padding = 0;  // after it, of no meaning
  };

  // Room for `frames`, a power of two, and for `copy_bytes` of copied payload.
  HeldFrames(size_t frames, size_t copy_bytes);

  // Frames that may begin.
  size_t room() const { return mask_ + 1 - (next_ - first_); }
  bool empty() const { return first_ == next_; }
  // More than half of the room is taken: a look at what was acknowledged pays.
  bool crowded() const { return 2 * (next_ - first_) > mask_ || 2 * (copy_end_ - copy_begin_) > copy_bytes_; }
  // True exactly when a request has still to hear of it.
  bool awaited() const { return awaited_ > 0; }
  // Bytes of the stream that the socket at hand was given, or that it does not need.
  uint64_t cursor() const { return cursor_; }
  uint64_t acked() const { return acked_; }

  // A frame begins: kHeaderBytes of `header`, then `payload` of `request`; null: of nobody's. Not while resending.
  void Begin(const char* header, const Payload& payload, SendRequest* request);
  // The kernel took the next `bytes` of what was begun.
  void Sent(size_t bytes) { cursor_ = sent_ += bytes; }
  // The kernel took the frame that was begun last; with `copy` its payload is copied where there is room.
  void Finish(bool copy);
  // The kernel itself uses the payload of the frame that was begun last, until Unpin of the number returned.
  uint64_t Pin();
  void Unpin(uint64_t frame);
  // The socket holds `queued` unacknowledged bytes (QueuedBytes; negative: not known).
  void Acked(int64_t queued);

  // The peer has taken `taken` bytes of the stream, and has closed. True: an earlier socket brought some of it, so the
  // current socket continues with something else.
  bool PeerTook(uint64_t taken);
  // True exactly when the peer has all that was sent, as far as is known.
  bool all_acked() const { return acked_ == sent_; }

  // Another socket goes on after the first `taken` bytes. False: the peer can't say so, since its kernel has
  // acknowledged more or was sent less.
  bool Rewind(uint64_t taken);
  bool resending() const { return cursor_ < sent_; }
  // What to send again next: entries used.
  int GatherAgain(iovec* iov, int max) const;
  // The peer may have said meanwhile that it has some of it (PeerTook).
  void SentAgain(size_t bytes) { cursor_ = std::min(cursor_ + bytes, sent_); }

 private:
  struct Frame {
    uint64_t end = 0;  // position after it
    Payload payload;
    SendRequest* request = nullptr;  // has to hear of it; null: it has, or there is none
    uint64_t copy_end = 0;           // in copies, where it has one
    bool pinned = false;
    char header[kHeaderBytes];

    uint64_t begin() const { return end - kHeaderBytes - payload.bytes - payload.padding; }
  };

  Frame& at(uint64_t frame) const { return frames_[frame & mask_]; }
  bool Copy(Frame* frame);
  void Report(Frame* frame);
  void Release();

  const size_t mask_;
  const size_t copy_bytes_;
  const std::unique_ptr<Frame[]> frames_;
  const std::unique_ptr<char[]> copies_;
  // All count from the stream's beginning; places are these modulo the room.
  uint64_t first_ = 0;
  uint64_t next_ = 0;
  uint64_t copy_begin_ = 0;
  uint64_t copy_end_ = 0;
  size_t awaited_ = 0;
  uint64_t begun_ = 0;   // position after the last frame
  uint64_t sent_ = 0;    // given to some socket
  uint64_t cursor_ = 0;  // given to the one at hand
  uint64_t acked_ = 0;
};

}  // namespace tcpx
