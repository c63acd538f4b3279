// arbiter_lanes.h: what the kernel says of lanes, for tests of the arbiter.
//
// Threads: any. Units: nanoseconds. Errors: none.
#pragma once

#include <cstdint>

#include "common/clock.h"
#include "net_socket/health/lane_liveness.h"

namespace tcpx {

inline constexpr int64_t kTimeoutNs = 30 * kSecond;
inline constexpr int64_t kAloneNs = 60 * kSecond;
inline constexpr int64_t kStartNs = 1000 * kSecond;

// A socket that was just given bytes.
inline LaneTcpInfo Holding(uint64_t acked = 100) {
  LaneTcpInfo info;
  info.bytes_acked = acked;
  info.established = true;
  info.held_bytes = 5000;
  info.segments_flying = 3;
  info.window_bytes = 65536;
  return info;
}
inline LaneTcpInfo Shut() {
  LaneTcpInfo info = Holding();
  info.window_bytes = 0;
  info.segments_flying = 0;
  return info;
}

}  // namespace tcpx
