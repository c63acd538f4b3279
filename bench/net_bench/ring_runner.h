// ring_runner.h: one all-reduce of one rank, message by message.
//
// Threads: one driver; spins, and gives the CPU away after a pass without progress where it has none of its own.
// Units:   elements are floats.
// Errors:  a channel's failure, or a message that came with the wrong size.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/channel.h"
#include "bench/net_bench/ring_order.h"
#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {

class RingRunner {
 public:
  struct Parts {
    Channel* send = nullptr;
    Channel* receive = nullptr;
    float* data = nullptr;      // reduced in place
    SlotRing* slots = nullptr;  // for receives; slots of one slice
    int window = 8;
    bool yield = false;
    Position* position = nullptr;
  };
  RingRunner(const RingOrder& order, const Parts& parts) : order_(order), parts_(parts) {}
  absl::Status Run();

 private:
  // Each returns true exactly when something moved; a failure is in status_.
  bool PostSend();
  bool PostReceives();
  bool TestSend();
  bool TestReceive();
  bool TakeIn(uint64_t message, size_t bytes);
  void Fail(const char* what, const std::string& why);

  const RingOrder order_;
  const Parts parts_;
  uint64_t sends_posted_ = 0;
  uint64_t sends_done_ = 0;
  uint64_t receives_posted_ = 0;
  uint64_t receives_done_ = 0;
  absl::Status status_;
};

}  // namespace bench
}  // namespace tcpx
