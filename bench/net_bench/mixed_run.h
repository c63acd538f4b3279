// mixed_run.h: a ping-pong on one connection while another streams large messages over the same network.
//
// Purpose: what a small message waits for when the link is full, which a ping-pong alone does not show. The stream goes
//          from rank 0 to rank 1, as many messages as ordered; the ping-pong goes on as long as the stream does, so its
//          first word says whether it is the last one.
// Threads: the calling thread; spins. Lifetime: borrows everything for the time of Run.
// Units:   bytes, nanoseconds.
// Errors:  a channel's failure; kDataLoss when an answer is not its question.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/channel.h"
#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {

// The first word of a ping.
inline constexpr uint64_t kPingBytesMin = sizeof(uint64_t);

struct MixedOrder {
  size_t ping_bytes = kPingBytesMin;  // at least that
  size_t stream_bytes = 0;            // at least ping_bytes: the slots are laid out for it
  int window = 8;                     // of the stream
  uint64_t messages = 0;              // of the stream; above 0
  uint64_t warmup = 0;                // of these: pings until then are not in the figures
  bool yield = false;                 // give the CPU away after a pass without progress
  int rank = 0;
};

struct MixedResult {
  int64_t elapsed_ns = 0;        // from the end of the warm-up to the stream's
  std::vector<int64_t> gaps_ns;  // each round trip meanwhile; rank 0 only
};

class MixedRun {
 public:
  // Connection 0 of `link` is the ping-pong's, connection 1 the stream's.
  MixedRun(const MixedOrder& order, Link* link, SlotRing* send_slots, SlotRing* receive_slots, Position* position);
  absl::Status Run(MixedResult* result);

 private:
  // One message of the ping-pong, between Post and Test.
  struct Turn {
    Channel* channel;
    uint8_t* data;
    bool posted = false;
  };

  // Each returns true exactly when something moved; a failure is in status_.
  bool MoveStream();
  bool MoveAsker();
  bool MoveEcho();
  bool Post(Turn* turn, size_t bytes);
  bool Finished(Turn* turn, size_t bytes);
  void Answered();
  bool StreamDone() const { return stream_done_ == order_.messages; }
  void Check(Step step, const Channel* channel, const char* what);

  const MixedOrder order_;
  Channel* const stream_;
  SlotRing* const stream_slots_;
  Position* const position_;
  Turn send_;
  Turn receive_;
  absl::Status status_;
  MixedResult* result_ = nullptr;
  uint64_t stream_posted_ = 0;
  uint64_t stream_done_ = 0;
  int64_t counted_from_ns_ = 0;  // 0: still warming up
  bool send_done_ = false;       // of this round
  bool receive_done_ = false;
  bool last_ = false;  // this round is the last one
  bool finished_ = false;
  uint64_t pings_ = 0;
  int64_t asked_ns_ = 0;
};

}  // namespace bench
}  // namespace tcpx
