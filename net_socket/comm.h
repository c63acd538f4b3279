// comm.h: what a send comm and a receive comm have in common: lanes, one sticky error, memory regions, closing.
//
// Purpose: a connection's two ends are a SendComm and a ReceiveComm. Here is all that does not depend on the direction.
//
// Threads: NCCL's calls take mutex_: isend, irecv and test only try it (a comm being closed or deregistered answers
// "not
//          yet"), deregMr and close wait for it. Lanes of the progress pool and the reactor never take it; they touch
//          the striper, the landings and Fail. Housekeeping and other connections reach a comm through its CommLink.
// States:  open -> failed (first error sticks) -> closed. Close takes the orderly road exactly when nothing failed and
// no
//          request is unfinished; else lanes are reset.
// Lifetime: a request, a region and a lane die with their comm. Close, then delete.
// Errors:  Fail's first status is what every later call returns. The peer hears of it through the health socket, and so
// do
//          the other connections of the communicator (FailureGroup).
#ifndef TCPX_NET_SOCKET_COMM_H_
#define TCPX_NET_SOCKET_COMM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/fd.h"
#include "nccl/plugin_api.h"
#include "net_socket/comm_link.h"
#include "net_socket/failure_group.h"
#include "net_socket/failure_report.h"
#include "net_socket/flight.h"
#include "net_socket/health.h"
#include "net_socket/lane_vitals.h"
#include "net_socket/request.h"
#include "net_socket/runtime.h"

namespace tcpx {

// What regMr hands out. Staged copies need nothing of it; it names the memory whose use must end in deregMr.
class MemoryRegion {
 public:
  char* data = nullptr;
  size_t bytes = 0;
  MemoryType type = MemoryType::kHost;
};

struct LaneSocket {
  OwnedFd fd;
  SocketAddress local;
  SocketAddress peer;
};

// A connection whose lanes are all there.
struct ConnectionSetup {
  Runtime* runtime = nullptr;
  uint64_t comm_id = 0;  // NCCL's communicator, 0 where unknown
  int device = 0;
  std::array<uint8_t, 16> connection_id{};
  std::vector<LaneSocket> lanes;  // by lane index
  uint32_t express_bytes = 0;
  int max_receives = 1;
  bool same_host = false;
  std::shared_ptr<Health> health;       // null: the peer has none
  std::shared_ptr<FailureGroup> group;  // null: a failure stays with its connection
  // A failure is told again every TCPX_STALL_WARN while NCCL goes on calling: releases with v6 to v10 may report a
  // plugin's errors nowhere (2.12 to 2.26).
  bool repeat_warnings = false;
};

class Comm : private Watched {
 public:
  ~Comm() override;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  virtual absl::Status Test(Request* request, bool* done, int* sizes) = 0;

  absl::StatusOr<MemoryRegion*> RegisterMemory(void* data, size_t bytes, MemoryType type);
  void DeregisterMemory(MemoryRegion* region);
  // Both roads. Afterwards only the destructor may be called.
  void Close();

  // In the reactor, once, behind the constructor: from here on housekeeping watches.
  void WatchInLoop();

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  absl::Status status() const;
  // The first failure wins; later ones are dropped. From any thread. A silent one writes no log line.
  // kQuiet: for what follows from a failure that was told already.
  enum class Noise { kWarn, kQuiet, kSilent };
  void Fail(absl::Status status, int lane, Noise noise = Noise::kWarn);

  const ConnectionSetup& setup() const { return setup_; }
  int lane_fd(int lane) const { return setup_.lanes[lane].fd.get(); }
  int lane_count() const { return static_cast<int>(setup_.lanes.size()); }
  Runtime* runtime() const { return setup_.runtime; }

 protected:
  explicit Comm(ConnectionSetup setup);

  virtual const char* role() const = 0;  // "send" or "receive"
  // True exactly when no request is unfinished. Under mutex_.
  virtual bool Idle() = 0;
  // True exactly when an unfinished request uses `region`, or any where region is null. Under mutex_.
  virtual bool InFlight(const MemoryRegion* region) = 0;
  // Returns once no thread but the caller's touches the lanes or a user's buffer. Under mutex_; may be called again.
  virtual void Quiesce() = 0;
  // The last thing before the sockets are given to ReleaseSocket: nothing of this comm is touched by the reactor
  // afterwards. Under mutex_.
  virtual void StopWatching() {}
  // Lets the peer learn of a failure at once.
  virtual void TellPeer(const absl::Status& status) = 0;
  // From any thread.
  virtual Flight FlightNow() const = 0;
  // True once a lane of the peer's has ended in order: nothing more comes on it. From any thread.
  virtual bool LaneEnded() const { return false; }
  // What a call on a failed comm returns. Under mutex_.
  absl::Status Refusal();

  void PeerDied(const absl::Status& status) override;
  void PeerEnded() override { peer_ended_.store(true, std::memory_order_relaxed); }
  void PeerFailed(const std::string& cause) override;
  void ContextFailed(const std::string& cause) override;
  void Patrol(int64_t now_ns) override;

  std::mutex mutex_;

 private:
  // `cause` is what others are told; empty: made of the status.
  void FailFor(std::string cause, absl::Status status, int lane, Noise noise);
  // True exactly when the communicator fails with this comm. Else *cause becomes its first cause, and *noise quiet.
  bool JoinFailure(std::string* cause, Noise* noise);
  Trouble TroubleOf(absl::string_view what, int lane) const;
  void LookAtLanes(int64_t now_ns);
  void LookAtRequests(int64_t now_ns);
  void LeaveWatch();

  ConnectionSetup setup_;
  std::atomic<bool> failed_{false};
  mutable std::mutex status_mutex_;
  absl::Status status_;
  std::string told_;           // the line of the log; stands still once failed_ is true
  int64_t told_again_ns_ = 0;  // under mutex_

  const std::shared_ptr<CommLink> link_;
  std::atomic<bool> peer_ended_{false};
  std::vector<LaneLiveness> liveness_;                                               // by lane; in the reactor
  StallWatch stall_;                                                                 // in the reactor
  absl::flat_hash_map<const MemoryRegion*, std::unique_ptr<MemoryRegion>> regions_;  // under mutex_
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_H_
