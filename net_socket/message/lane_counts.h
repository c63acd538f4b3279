// lane_counts.h: what a lane has moved so far, for those that watch.
//
// Threads: one writes (the one that moves the lane), any reads. Values of different counts may be of different moments.
// Units:   bytes, and numbers of things.
#pragma once

#include <cstdint>

#include "net_socket/message/flight.h"

namespace tcpx {

using Counter = Relaxed<uint64_t>;

// LaneCounts at one moment, or the sum of several.
struct LaneSums {
  uint64_t bytes = 0;
  uint64_t chunks = 0;
  uint64_t calls = 0;
  uint64_t short_calls = 0;
  uint64_t zero_copy = 0;
  uint64_t copied = 0;
};

struct LaneCounts {
  Counter bytes;        // of the stream, so with headers and padding
  Counter chunks;       // whole ones
  Counter calls;        // that moved something
  Counter short_calls;  // of them, sends that the kernel took only a part of
  Counter zero_copy;    // chunks that were sent without a copy
  Counter copied;       // of them, that the kernel copied after all

  LaneSums Now() const {
    return {bytes.get(), chunks.get(), calls.get(), short_calls.get(), zero_copy.get(), copied.get()};
  }
};

}  // namespace tcpx
