// lane_counts.h: what a lane has moved so far, for those that watch.
//
// Threads: one writes (the one that moves the lane), any reads. Values of different counts may be of different moments.
// Units:   bytes, and numbers of things.
#pragma once

#include <cstdint>

#include "net_socket/message/flight.h"

namespace tcpx {

using Counter = Relaxed<uint64_t>;

template <typename Count>
struct LaneCountsOf {
  Count bytes{};        // of the stream, so with headers and padding
  Count chunks{};       // whole ones
  Count calls{};        // that moved something
  Count short_calls{};  // of them, sends that the kernel took only a part of
  Count zero_copy{};    // chunks that were sent without a copy
  Count copied{};       // of them, that the kernel copied after all
};

// LaneCounts at one moment, or the sum of several.
using LaneSums = LaneCountsOf<uint64_t>;

struct LaneCounts : LaneCountsOf<Counter> {
  LaneSums Now() const {
    return {bytes.get(), chunks.get(), calls.get(), short_calls.get(), zero_copy.get(), copied.get()};
  }
};

}  // namespace tcpx
