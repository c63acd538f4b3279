// path_profile.h: all that depends on where a lane's peer is and what lies between.
//
// Purpose: decided once, when a lane is dialled or accepted, from the parameters and a few facts. Its users
//          read a field that says what to do, and never ask where the peer is.
// Threads: any; pure, and a value. Units: bytes; bytes per second. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/params.h"
#include "common/traffic_class.h"

namespace tcpx {

// Where memory is the limit and not a flow, a bulk lane takes another chunk while it holds less unsent data than this
// (also its TCP_NOTSENT_LOWAT): enough to keep it busy until its thread comes round again, little enough not to bind
// chunks to a slow lane.
inline constexpr int kBulkUnsentBytes = 256 * 1024;

// SO_RCVBUF towards the same host; the kernel doubles it for its own needs, and may cap it (net.core.rmem_max). What is
// queued at the receiver stays in the caches that both ends share; left to itself the kernel queues megabytes as soon
// as the reader is late once, and each byte then comes from memory. Large messages are faster where more of them may be
// under way: lane 0 has the second size while such come (pattern_tuning.h, docs/experiments.md).
inline constexpr int kSameHostBytes = 384 << 10;
inline constexpr int kSameHostLargeBytes = 768 << 10;

enum class LaneKind {
  kFirst,  // lane 0, and the health socket
  kBulk,   // carries chunks of large messages
};

// What a lane's socket is bound to before connect.
enum class LeaveBy {
  kDevice,   // SO_BINDTODEVICE and the interface's address
  kAddress,  // the interface's address; routes choose the device
  kRoute,    // nothing: routes choose the address too
};

struct PathFacts {
  bool same_host = false;    // the peer is on this host
  bool fused = false;        // we dial from a device of several interfaces
  bool same_subnet = false;  // the peer lies in our interface's subnet
  bool nic_ties = false;     // Nic::ties
  bool routed = true;        // the kernel has a route to the peer by our interface
  bool foreign = false;      // our interface has no address of the peer's family
  int family = 0;
  LaneKind kind = LaneKind::kFirst;
  int traffic_class = kNoTrafficClass;  // octet
};

// The initial values are those of a first lane to another host where no parameter says otherwise.
struct PathProfile {
  // A parameter's value was asked for, and its refusal is worth a line; another is only a wish.
  struct Buffer {
    int bytes = -1;  // -1: the kernel's auto-tuning
    bool asked = false;
  };

  // The socket, before connect or before the answer (lane_socket.h).
  int family = 0;
  Buffer send_buffer;  // bounded where the user asked only: a fixed one ends auto-tuning, and bounds what is in flight
  Buffer receive_buffer;
  std::string congestion;  // empty: the system's
  bool congestion_asked = false;
  uint64_t pacing = 0;                  // 0: unpaced
  int traffic_class = kNoTrafficClass;  // octet; the priority goes with it
  std::optional<int> unsent_mark;       // TCP_NOTSENT_LOWAT; none: the system's
  // In this order, until one finds the peer. An accepted lane's socket is tied to the device where that is first.
  std::vector<LeaveBy> ways;

  // Whether speeds decide how many lanes there are where no parameter does; else there is one.
  bool lanes_by_speed = true;
  // Whether bulk lanes that bring nothing are paused, and others opened where both ends can: where nobody chose their
  // number, and they share interfaces.
  bool pilots_lanes = true;
  // In place of that lanes are opened, moved and closed all the time: tests only.
  bool shuffles_lanes = false;

  // A sender's bulk lanes: filled by the rate that they were seen to have, else up to kBulkUnsentBytes.
  bool paced_by_rate = true;
  Switch zero_copy = Switch::kAuto;  // kAuto: tried; kOn: kept although the kernel copies

  // A sender's lane 0: a lone short frame is padded, so that the receiver's kernel may put its acknowledgement off.
  bool pads_lone_frames = false;

  // A receiver's lane 0 (pattern_tuning.h). Between hosts acknowledgements are the kernel's own: what is put off there
  // is what the sender takes for the round trip, and so for the time to wait for a lost packet.
  bool delays_acks = false;
  bool raises_low_water = false;
  bool bounds_receive_buffer = false;  // to kSameHostBytes, or kSameHostLargeBytes while large messages come
  bool times_long_messages = false;    // so that a ping-pong of messages of several reads is known
};

PathProfile MakePathProfile(const Options& options, const PathFacts& facts);

}  // namespace tcpx
