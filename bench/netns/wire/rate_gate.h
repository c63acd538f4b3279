// rate_gate.h: a queue with a rate: when does what arrives now have left it, and is there room?
//
// Purpose: the queue itself is never kept: what it holds follows from when it will be empty. A change of the rate does
//          not alter the times that Pass has returned; what arrives later leaves at the new rate.
// Threads: one; pure. Units: bytes, bits per second (0: no limit), nanoseconds. Errors: none.
#pragma once

#include <cstdint>

namespace tcpx {
namespace wire {

class RateGate {
 public:
  // Bytes that wait, the one on its way out included.
  uint64_t Backlog(int64_t now, uint64_t rate) const;
  // When the last of `bytes` has left. They arrived at `now` or, because we looked late, at any time since `since`: a
  // queue that was busy then has had no gap.
  int64_t Pass(int64_t since, int64_t now, uint64_t bytes, uint64_t rate);

 private:
  int64_t free_at_ = 0;
};

}  // namespace wire
}  // namespace tcpx
