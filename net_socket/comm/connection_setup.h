// connection_setup.h: a connection whose lanes are all there, as connect and accept hand it to a comm.
//
// Threads: plain data. Lifetime: the runtime outlives it; the rest is owned or shared. Units: bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/fd.h"
#include "net_socket/comm/communicator.h"
#include "net_socket/comm/connection_end.h"
#include "net_socket/health/health_peer.h"
#include "net_socket/health/watchdog.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

class Redialler;
struct Runtime;

struct LaneSocket {
  OwnedFd fd;
  SocketAddress local;
  SocketAddress peer;
  PathProfile profile;
  LanePath path;  // of a lane that was dialled
  Seals seals;    // empty: it is not encrypted
};

struct ConnectionSetup {
  Runtime* runtime = nullptr;
  std::shared_ptr<const Communicator> communicator = std::make_shared<Communicator>();  // never null
  Direction direction = Direction::kSend;                                               // its comm's
  int device = 0;
  std::array<uint8_t, 16> connection_id{};
  // By lane index; the profile of lane 0 is the connection's. Where `piloted` there is a place for each lane that may
  // be opened, without a socket until it is.
  std::vector<LaneSocket> lanes;
  std::shared_ptr<const void> taken_lanes;  // of the runtime's budget, of the beginning; may be null
  uint32_t express_bytes = 0;
  int max_receives = 1;                  // of the receiving end; above 1 sends wait for credits
  std::shared_ptr<HealthPeer> health;    // null: the peer has none
  bool heals = false;                    // both ends have TCPX_HEAL, and a health socket
  bool piloted = false;                  // heals, and lanes may be opened and closed
  std::shared_ptr<Redialler> redialler;  // of a sender that heals, as the next
  std::shared_ptr<HealthRedialler> health_redialler;
  std::shared_ptr<Activity> activity = std::make_shared<Activity>();  // never null

  // Not null and true: its user does not know yet who the peer is (Comm::Adopt). Such a connection fails without a word
  // to others, or in the log.
  std::unique_ptr<std::atomic<bool>> apart;

  bool sends() const { return direction == Direction::kSend; }
  bool fails_alone() const { return apart != nullptr && apart->load(std::memory_order_acquire); }
  // Null: a failure stays with the connection.
  FailureGroup* group() const { return fails_alone() ? nullptr : communicator->group.get(); }
  int lane_fd(int lane) const { return lanes[static_cast<size_t>(lane)].fd.get(); }
  // What seals the lane's first socket: what moves a half of it takes that. Empty where nothing is encrypted.
  Seals& seals(int lane) { return lanes[static_cast<size_t>(lane)].seals; }
  const PathProfile& path() const { return lanes[0].profile; }
  // Lanes that it may have: some may be without a socket until they are opened (`piloted`).
  int lane_count() const { return static_cast<int>(lanes.size()); }
};

}  // namespace tcpx
