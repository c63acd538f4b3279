// lane_socket.h: how a lane's socket is set up, on both ends.
//
// Threads: any. Units: bytes.
// Errors:  options that only cost speed (buffers, congestion control, pacing, marking) never fail a lane: one log line
//          each says what the kernel refused.
#ifndef TCPX_NET_SOCKET_NIC_LANE_SOCKET_H_
#define TCPX_NET_SOCKET_NIC_LANE_SOCKET_H_

#include <atomic>

#include "common/params.h"
#include "common/traffic_class.h"

namespace tcpx {

// A bulk lane takes another chunk while it holds less unsent data than this (also its TCP_NOTSENT_LOWAT): enough to
// keep a flow busy until its thread comes round again, little enough not to bind chunks to a slow flow.
inline constexpr int kBulkUnsentBytes = 256 * 1024;

// SO_RCVBUF towards the same host; the kernel doubles it for its own needs, and may cap it (net.core.rmem_max). What is
// queued at the receiver stays in the caches that both ends share; left to itself the kernel queues megabytes as soon as
// the reader falls behind once, and each byte then comes from memory. Large messages are faster where more of them may
// be under way: lane 0 has the second size while such come (pattern_tuning.h, docs/performance.md).
inline constexpr int kSameHostBytes = 384 << 10;
inline constexpr int kSameHostLargeBytes = 768 << 10;

// What is said once per process, however many lanes it concerns.
struct LaneNotes {
  std::atomic<bool> told_of_priority{false};
};

struct LaneTraits {
  int family = 0;
  bool bulk = false;                    // carries chunks of large messages
  bool same_host = false;               // the peer is on this host
  int traffic_class = kNoTrafficClass;  // octet
  int sndbuf = -1;                      // -1: as the options say, else instead of the kernel's own choice
  LaneNotes* notes = nullptr;
};

// On the dialling side before connect, so that the SYN bears the class too.
void ConfigureLane(int fd, const Options& options, const LaneTraits& traits);

// True where ConfigureLane sets kSameHostBytes: the user has not chosen, and nothing paces.
bool BoundsReceiveBuffer(const Options& options, bool same_host);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_NIC_LANE_SOCKET_H_
