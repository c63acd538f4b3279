// pattern_tuning.h: the receiving socket of lane 0, set for the pattern at which its peer sends.
//
// Purpose: on a socket that carries data in one direction only, acknowledgements are packets of their own: where the
//          peer waits for our answer they are put off, or sent when nobody waits for a CPU; a stream gets them at once.
//          On the same host large messages get a larger window than others, which should stay in the caches. Between
//          hosts it does nothing (PathProfile): acknowledgements held back there showed the sender round trips of 13 to
//          17 ms where the path had 0.1 to 0.3, and lost packets were missed that late.
// Threads: one at a time. Units: bytes, nanoseconds. Errors: none; a kernel that refuses an option is only slower.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "net_socket/nic/path_profile.h"

namespace tcpx {

enum class TrafficPattern {
  kUnknown,
  kPingPong,
  kLargePingPong,  // of messages that the kernel brings in several segments
  kStream,
  kLargeStream,  // of messages larger than the caches like
};

// Whether the peer waits for our answers or sends a stream, concluded from what the reads bring: what makes a single
// message arrive early (acknowledgements delayed until our answer goes out, payload read to its place only) costs a
// stream bandwidth, and vice versa. Pure.
class PatternDetector {
 public:
  // Messages from here on are large. Found by measuring 64 KiB to 8 MiB over loopback, whose segments have up to 64 KiB
  // (docs/experiments.md).
  static constexpr size_t kLargePingPongBytes = 192 << 10;
  static constexpr size_t kLargeStreamBytes = 1 << 20;
  // The pattern changes once there are this many signs more of one kind than of the other.
  static constexpr int kScoreMax = 4;

  // `times_long_messages` false: only a message of one read is a sign of a ping-pong.
  explicit PatternDetector(bool times_long_messages) : times_long_messages_(times_long_messages) {}

  // What one read brought.
  struct Read {
    int messages = 0;            // completed by it
    bool between_frames = true;  // it ended where a message ended
    size_t message_bytes = 0;    // of the last message that it brought a part of
  };

  TrafficPattern pattern() const { return pattern_; }
  // Returns the pattern from now on. `clock` returns nanoseconds; asked only where a message of several reads begins or
  // ends.
  template <typename Clock>
  TrafficPattern Saw(const Read& read, const Clock& clock) {
    const bool began_here = between_frames_;
    between_frames_ = read.between_frames;
    if (began_here && !read.between_frames && read.messages == 0) {
      if (times_long_messages_) Began(clock());
    } else if (read.messages == 1 && read.between_frames) {
      Vote(began_here || (times_long_messages_ && CameAlone(clock())) ? 1 : -1, read.message_bytes);
    } else if (read.messages > 0) {
      Vote(-1, read.message_bytes);
    }
    return pattern_;
  }

 private:
  void Began(int64_t now_ns) {
    waited_ns_ = now_ns - ended_at_ns_;
    began_at_ns_ = now_ns;
  }
  // In a stream the next message comes at once. A peer that waits for our answer is silent for as long as that takes,
  // which is about as long as its own message took.
  bool CameAlone(int64_t now_ns) {
    ended_at_ns_ = now_ns;
    return waited_ns_ >= (now_ns - began_at_ns_) / 2;
  }
  void Vote(int sign, size_t message_bytes) {
    score_ = std::clamp(score_ + sign, -kScoreMax, kScoreMax);
    if (score_ == kScoreMax) {
      pattern_ = message_bytes >= kLargePingPongBytes ? TrafficPattern::kLargePingPong : TrafficPattern::kPingPong;
    } else if (score_ == -kScoreMax) {
      pattern_ = message_bytes >= kLargeStreamBytes ? TrafficPattern::kLargeStream : TrafficPattern::kStream;
    }
  }

  const bool times_long_messages_;
  TrafficPattern pattern_ = TrafficPattern::kUnknown;
  int score_ = 0;
  bool between_frames_ = true;  // before the next read
  int64_t ended_at_ns_ = 0;     // the last message of several reads
  int64_t began_at_ns_ = 0;
  int64_t waited_ns_ = 0;  // for the current one to begin
};

class PatternTuning {
 public:
  // `acks_awaited`: the sender keeps what is not acknowledged, and waits for that beyond kCopiedPayloadBytesMax. The
  // socket has answered its hello.
  PatternTuning(int fd, const PathProfile& path, bool acks_awaited = false);

  // To be called after every read: the pattern the peer now sends at, and the size of the largest message that the read
  // was about.
  void Keep(TrafficPattern pattern, uint64_t message_bytes);
  // The socket has sent something: the kernel puts acknowledgements off from here on.
  void Answered() { acks_at_once_ = false; }
  // The descriptor names another socket, as ConfigureLane set it.
  void SocketReplaced();
  // From here on the socket may be polled: every byte wakes.
  void Stop() { SetLowWater(1); }

 private:
  void AckAtOnce(bool awaited);
  void SetLowWater(int bytes);
  void SetReceiveBuffer(int bytes);
  void DelayAcks();

  const int fd_;
  const bool may_delay_acks_;
  const bool acks_awaited_;
  const bool may_set_low_water_;
  const bool may_set_receive_buffer_;
  int low_water_ = 1;                    // the kernel's default
  int receive_buffer_ = kSameHostBytes;  // as ConfigureLane set it
  int64_t delayed_at_ns_ = 0;            // 0: acknowledgements are not delayed
  bool acks_at_once_ = false;            // as far as is known
  int64_t awaited_at_ns_ = 0;            // a message whose sender waits came at the latest; 0: none
};

}  // namespace tcpx
