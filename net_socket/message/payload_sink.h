// payload_sink.h: where a lane puts payload that it can't write in place.
//
// Purpose: the seam between lanes, which know host memory only, and staging for GPU memory: a receive with a sink is
//          filled piece by piece, through places that the sink lends.
// Threads: any thread that moves a lane; each place belongs to one lane between Take and Filled.
// Units:   bytes of the message.
// Errors:  none here; a lane of a failed comm keeps its place, which the sink takes back once no thread moves the lane.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcpx {

struct Landing;

// Bytes [offset, +bytes) of the message that `landing` is of.
struct PayloadPlace {
  char* data = nullptr;
  size_t bytes = 0;
  Landing* landing = nullptr;
  uint64_t offset = 0;
  uint64_t message_bytes = 0;
};

class PayloadSink {
 public:
  // A place for the first part of `wanted`, whose `data` is ignored: at most its bytes, at least one. Null: none is
  // free, and the lane waits until it is moved again.
  virtual PayloadPlace* Take(const PayloadPlace& wanted) = 0;
  // All of `place` was written. Neither it nor its landing may be touched afterwards.
  virtual void Filled(PayloadPlace* place) = 0;

 protected:
  ~PayloadSink() = default;
};

}  // namespace tcpx
