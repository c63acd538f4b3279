// traced_lanes.h: the sockets that a trace tells apart.
//
// Purpose: a descriptor's number is used again for other sockets; a trace shows each socket as a lane of its own.
// Threads: one at a time.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  none; what can't be distinguished is "unknown".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace tcpx {

class TracedLanes {
 public:
  // The socket that a descriptor number means at the moment.
  struct Lane {
    uint32_t number = 0;
    int64_t looked_ns = 0;
    std::string addresses;
  };

  const Lane& Of(int fd, int64_t now_ns);

 private:
  // Sockets that are distinguished; those of further descriptors are "unknown".
  static constexpr size_t kLanesMax = 8192;

  absl::flat_hash_map<int, Lane> lanes_;  // by descriptor number
  uint32_t seen_ = 0;
};

}  // namespace tcpx
