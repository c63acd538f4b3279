#include "net_socket/receive/pattern_tuning.h"

#include <sys/socket.h>

#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

// TCP_QUICKACK 0 lasts until the delayed-acknowledgement timer fires (40 ms at the least, TCP_DELACK_MIN of Linux); it
// is set again well before.
constexpr int64_t kDelayedForNs = 4 * kMillisecond;

// With SO_RCVLOWAT above what is queued the kernel sends the acknowledgement that every second segment asks for when
// the segment arrives, on the sender's CPU, and not at the end of our recvmsg, where a message would wait for it
// (__tcp_ack_snd_check and tcp_cleanup_rbuf, Linux 6.18): 2 us at 4 KiB. It has no meaning for non-blocking reads. In a
// stream, and in a large message, the sender's CPU is the one that is short, so there it is taken back.
constexpr int kHighLowWater = 64 * 1024;

}  // namespace

PatternTuning::PatternTuning(int fd, const PathProfile& path, bool acks_awaited)
    : fd_(fd),
      may_delay_acks_(path.delays_acks),
      acks_awaited_(acks_awaited && path.delays_acks),
      may_set_low_water_(path.raises_low_water),
      may_set_receive_buffer_(path.bounds_receive_buffer) {
  SetLowWater(kHighLowWater);
  if (acks_awaited_) AckAtOnce(true);
}

void PatternTuning::Keep(TrafficPattern pattern, uint64_t message_bytes) {
  const bool awaited = acks_awaited_ && message_bytes > kCopiedPayloadBytesMax;
  if (awaited) AckAtOnce(true);
  if (pattern == TrafficPattern::kUnknown) return;
  const bool large = pattern == TrafficPattern::kLargePingPong || pattern == TrafficPattern::kLargeStream;
  SetLowWater(pattern == TrafficPattern::kPingPong ? kHighLowWater : 1);
  SetReceiveBuffer(large ? kSameHostLargeBytes : kSameHostBytes);
  if (!may_delay_acks_ || awaited) return;
  if (pattern == TrafficPattern::kPingPong || pattern == TrafficPattern::kLargePingPong) {
    DelayAcks();
  } else {
    AckAtOnce(false);
  }
}

// A stream under bbr loses a third of its speed if acknowledgements are late. And a sender whose window is full waits
// up to 40 ms for the acknowledgement of its last bytes, if the socket has answered something before.
void PatternTuning::AckAtOnce(bool awaited) {
  if (awaited) awaited_at_ns_ = CoarseMonotonicNanos();
  if (!acks_at_once_ && (awaited || delayed_at_ns_ != 0)) {
    (void)SetQuickAck(fd_, 1);
    acks_at_once_ = true;
  }
  delayed_at_ns_ = 0;
}

void PatternTuning::SocketReplaced() {
  low_water_ = 1;
  receive_buffer_ = kSameHostBytes;
  delayed_at_ns_ = 0;
  acks_at_once_ = false;
}

void PatternTuning::SetLowWater(int bytes) {
  if (!may_set_low_water_ || bytes == low_water_) return;
  low_water_ = bytes;
  setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

void PatternTuning::SetReceiveBuffer(int bytes) {
  if (!may_set_receive_buffer_ || bytes == receive_buffer_) return;
  receive_buffer_ = bytes;
  (void)SetBuffers(fd_, -1, bytes);
  // The window keeps to what the buffer was at the beginning of the connection unless it is set (tcp_set_window_clamp).
  (void)SetWindowClamp(fd_, 2 * bytes);
}

// Where both kinds of message come by turns acknowledgements are not put off: each change costs a call.
void PatternTuning::DelayAcks() {
  const int64_t now = CoarseMonotonicNanos();
  if (now - delayed_at_ns_ < kDelayedForNs || now - awaited_at_ns_ < kDelayedForNs) return;
  delayed_at_ns_ = now;
  acks_at_once_ = false;
  (void)SetQuickAck(fd_, 0);
}

}  // namespace tcpx
