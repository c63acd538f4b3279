// receive_tempo.h: whether lane 0's peer waits for our answers or sends a stream, told from what the reads bring.
//
// Purpose: what makes a single message arrive early (acknowledgements delayed until our answer goes out, payload read
//          to its place only) costs a stream bandwidth, and the other way round. Pure.
//
// Threads: one at a time. Units: bytes, nanoseconds. Errors: none.
#ifndef TCPX_NET_SOCKET_RECEIVE_TEMPO_H_
#define TCPX_NET_SOCKET_RECEIVE_TEMPO_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tcpx {

enum class Tempo {
  kUnknown,
  kPingPong,
  kLargePingPong,  // of messages that the kernel brings in several segments
  kStream,
};

class ReceiveTempo {
 public:
  // Messages from here on come in so many segments that the receiver's CPU is the one with time to spare: found by
  // measuring 128, 256 KiB and 1 MiB over loopback, whose segments have up to 64 KiB (docs/performance.md).
  static constexpr size_t kLargeBytes = 192 << 10;
  // So many signs of one kind more than of the other, and the tempo changes.
  static constexpr int kScoreMax = 4;

  // What one read brought.
  struct Read {
    int messages = 0;            // completed by it
    bool between_frames = true;  // it ended where a message ended
    size_t message_bytes = 0;    // of the last message that it brought a part of
  };

  Tempo tempo() const { return tempo_; }
  // Returns the tempo from now on. `clock` returns nanoseconds; asked only where a message of several reads begins or
  // ends.
  template <typename Clock>
  Tempo Saw(const Read& read, const Clock& clock) {
    const bool began_here = between_frames_;
    between_frames_ = read.between_frames;
    if (began_here && !read.between_frames && read.messages == 0) {
      Began(clock());
    } else if (read.messages == 1 && read.between_frames) {
      const bool lone = began_here || CameAlone(clock());
      Vote(lone ? (read.message_bytes >= kLargeBytes ? Tempo::kLargePingPong : Tempo::kPingPong) : Tempo::kStream);
    } else if (read.messages > 0) {
      Vote(Tempo::kStream);
    }
    return tempo_;
  }

 private:
  void Began(int64_t now_ns) {
    waited_ns_ = now_ns - ended_at_ns_;
    began_at_ns_ = now_ns;
  }
  // Of a stream the next message comes at once. A peer that waits for our answer is silent for as long as that takes,
  // which is about as long as its own message took.
  bool CameAlone(int64_t now_ns) {
    ended_at_ns_ = now_ns;
    return waited_ns_ >= (now_ns - began_at_ns_) / 2;
  }
  void Vote(Tempo tempo) {
    const int sign = tempo == Tempo::kStream ? -1 : 1;
    score_ = std::clamp(score_ + sign, -kScoreMax, kScoreMax);
    if (score_ == sign * kScoreMax) tempo_ = tempo;
  }

  Tempo tempo_ = Tempo::kUnknown;
  int score_ = 0;
  bool between_frames_ = true;  // before the next read
  int64_t ended_at_ns_ = 0;     // the last message of several reads
  int64_t began_at_ns_ = 0;
  int64_t waited_ns_ = 0;  // for the current one to begin
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_RECEIVE_TEMPO_H_
