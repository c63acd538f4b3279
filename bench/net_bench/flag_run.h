// flag_run.h: messages whose arrival a second thread sees in their data, as a GPU sees NCCL's LL and LL128.
//
// Purpose: the driver does what NCCL's proxy does: it posts what the "GPU" has made ready, posts receives into slots
//          that the "GPU" has emptied, and tests the oldest request of each direction. The second thread plays the
//          GPU: it fills send slots, polls the flags in receive slots, checks each line, and never looks at a request.
// Threads: the calling thread and one of its own, for the time of Run. Lifetime: borrows everything for that time.
// Units:   bytes, nanoseconds.
// Errors:  a channel's failure; kDataLoss when a line showed its flag and other data than its message's.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/channel.h"
#include "bench/net_bench/shared_page.h"
#include "common/payload/flag_lines.h"

namespace tcpx {
namespace bench {

struct FlagOrder {
  LineKind kind = LineKind::kLl;
  size_t bytes = 0;
  int window = 8;
  uint64_t messages = 0;
  uint64_t warmup = 0;  // of the messages: not in the figures
  uint64_t first_flag = 1;
  bool ping = true;   // each message is answered; else rank 0 sends as fast as it can
  bool yield = true;  // give the CPU away after a look that found nothing: both threads share one
  int rank = 0;
  std::vector<int> gpu_cpus;  // where the second thread runs; empty: as the caller
};

struct FlagResult {
  int64_t elapsed_ns = 0;        // of the messages after the warm-up, as the second thread saw them
  std::vector<int64_t> gaps_ns;  // with ping: each round trip
  uint64_t tests = 0;            // of receives, warm-up included
};

class FlagRun {
 public:
  FlagRun(const FlagOrder& order, Link* link, SlotRing* send_slots, SlotRing* receive_slots, Position* position);
  absl::Status Run(FlagResult* result);

 private:
  bool sends() const { return order_.ping || order_.rank == 0; }
  bool receives() const { return order_.ping || order_.rank == 1; }

  // The second thread.
  void Gpu();
  bool Fill(uint64_t message);
  bool Await(uint64_t message);
  void Look();

  // The driver: true exactly when something moved.
  bool MoveSends();
  bool MoveReceives();
  bool Finished() const;
  void Fail(absl::Status status);

  const FlagOrder order_;
  Channel* const send_;
  Channel* const receive_;
  SlotRing* const send_slots_;
  SlotRing* const receive_slots_;
  Position* const position_;
  absl::Status status_;
  FlagResult* result_ = nullptr;
  uint64_t send_posted_ = 0;
  uint64_t receive_posted_ = 0;
  uint64_t receive_done_ = 0;

  std::atomic<bool> stop_{false};
  std::atomic<bool> wrong_{false};
  alignas(128) std::atomic<uint64_t> filled_{0};     // by the second thread
  std::atomic<uint64_t> consumed_{0};                // by the second thread
  alignas(128) std::atomic<uint64_t> send_done_{0};  // by the driver
};

}  // namespace bench
}  // namespace tcpx
