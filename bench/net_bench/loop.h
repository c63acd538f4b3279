// loop.h: the driver loop: what NCCL's proxy thread does with its connections, pass after pass.
//
// Purpose: each pass visits every connection once: posts sends while the window allows, posts receives ahead, and tests
//          the oldest outstanding request of each direction. Two habits:
//            default             posts and tests until nothing more is possible in this pass
//            one isend per pass  one isend and one test of each direction per connection and pass, as NCCL
// Threads: the calling thread; spins. Lifetime: borrows everything for the time of Run.
// Units:   bytes, nanoseconds.
// Errors:  a channel's failure, or kDataLoss from --check; the text names connection and message.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/channel.h"
#include "bench/net_bench/pattern.h"
#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {

// When a connection may send its next message.
enum class Gate : uint32_t {
  kStream,  // whenever the window allows
  kPing,    // when every earlier one was answered
  kEcho,    // when one more was received than answered
};

struct LoopOrder {
  Gate gate = Gate::kStream;
  bool sends = true;
  bool receives = true;
  int connections = 1;
  int window = 8;
  uint64_t messages = 0;  // per connection and direction
  size_t bytes = 0;
  bool one_isend_per_pass = false;
  bool check = false;
  bool yield = false;  // give the CPU away after a pass without progress, as NCCL does: for more drivers than CPUs
  uint64_t seed = 0;
  uint32_t rank = 0;  // ours; the peer's is peer_rank
  uint32_t peer_rank = 1;
  bool stamp = false;  // record the time of each receive of connection 0
};

struct LoopResult {
  int64_t elapsed_ns = 0;        // from the start to the last completion
  std::vector<int64_t> gaps_ns;  // between successive receives of connection 0; the first from the start
};

class Loop {
 public:
  Loop(const LoopOrder& order, Link* link, SlotRing* send_slots, SlotRing* receive_slots, Position* position);
  absl::Status Run(LoopResult* result);

 private:
  struct Side {
    Channel* channel = nullptr;
    uint64_t posted = 0;
    uint64_t done = 0;
  };
  struct Connection {
    Side send;
    Side receive;
  };

  // Each returns true exactly when something moved; a failure is in status_.
  bool Pass(int connection);
  bool PostSends(int connection);
  bool PostReceives(int connection);
  bool TestSends(int connection);
  bool TestReceives(int connection);

  uint64_t SendLimit(const Connection& connection) const;
  void Finished(int connection, const Side& side);
  bool Accept(int connection, uint64_t message, size_t bytes);
  absl::Status VerifyMessage(int connection, uint64_t message, size_t bytes) const;
  void Fail(int connection, uint64_t message, const char* what, const std::string& why);
  MessageIdentity Identity(uint32_t sender, int connection, uint64_t message) const;

  const LoopOrder order_;
  SlotRing* const send_slots_;
  SlotRing* const receive_slots_;
  Position* const position_;
  std::vector<Connection> connections_;
  int open_ = 0;  // directions with messages left
  absl::Status status_;
  int64_t last_stamp_ns_ = 0;
  LoopResult* result_ = nullptr;
};

}  // namespace bench
}  // namespace tcpx
