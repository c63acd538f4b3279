// comm.h: what a send comm and a receive comm have in common: lanes, one sticky error, memory regions, closing.
//
// Purpose: a connection's two ends are a SendComm and a ReceiveComm. Here is all that does not depend on the direction.
// Threads: NCCL's calls take mutex_: isend, irecv and test only try it (a comm being closed or deregistered answers
//          "not yet"), deregMr and close wait for it. Lanes of the progress pool and the reactor never take it; they
//          touch the striper, the receives and the failure. Housekeeping and other connections reach a comm through
//          links.
// Parts:   the failure (connection_failure.h), housekeeping's looks (progress_check.h), other sockets for lanes
//          (lane_sockets.h), what the health socket tells (peer_news.h), a profiler's events (transfer_events.h), what
//          is counted (end_numbers.h). Here are the registered memory, the lock and the closing.
// States:  open -> failed (first error sticks) -> closed (lane_owner.h). Close takes the orderly road exactly
//          when nothing failed and no request is unfinished; else lanes are reset.
// Lifetime: a request, a region and a lane die with their comm. Close, then delete.
// Errors:  the first failure's status is what every later call returns. The peer hears of it through the health socket,
//          and so do the other connections of the communicator (FailureGroup).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/plugin_api.h"
#include "net_socket/comm/end_numbers.h"
#include "net_socket/comm/lane_sockets.h"
#include "net_socket/comm/peer_news.h"
#include "net_socket/health/failure_group.h"
#include "net_socket/health/watchdog.h"
#include "net_socket/message/transfer_events.h"

namespace tcpx {

class GpuAllowance;
class GpuPool;

// What regMr hands out. Staged copies need nothing of it; it names the memory whose use must end in deregMr.
// Threads: constant from regMr on. Units: bytes.
class MemoryRegion {
 public:
  GpuPool* gpu = nullptr;  // null exactly when it is host memory
  char* data = nullptr;
  size_t bytes = 0;

  // True exactly when a request for `length` bytes at `at`, of the region `own`, uses this memory. One without a region
  // of its own counts for all memory that it overlaps.
  bool UsedBy(const MemoryRegion* own, const char* at, size_t length) const {
    if (own != nullptr) return own == this;
    return at < data + bytes && at + length > data;
  }
};

// The memory that NCCL has registered with a comm. A region lives until Remove, or as long as this.
// Threads: Make from any; Add and Remove under the comm's mutex. Lifetime: borrows the setup.
class RegisteredRegions {
 public:
  explicit RegisteredRegions(const ConnectionSetup* setup) : setup_(setup) {}

  // A region that is not registered yet: asking the driver takes its time. kInvalidArgument for memory of a kind that
  // was not announced, else the GPU driver's error.
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Make(void* data, size_t bytes, MemoryType type) const;
  MemoryRegion* Add(std::unique_ptr<MemoryRegion> region);
  // Not found: a no-op.
  void Remove(const MemoryRegion* region) { regions_.erase(region); }
  size_t count() const { return regions_.size(); }

 private:
  const ConnectionSetup* const setup_;
  absl::flat_hash_map<const MemoryRegion*, std::unique_ptr<MemoryRegion>> regions_;
};

class Comm : protected ConnectionEnd, private FailureGroup::Member {
 public:
  virtual ~Comm() = default;

  virtual absl::Status Test(Request* request, bool* done, int* sizes) = 0;

  absl::StatusOr<MemoryRegion*> RegisterMemory(void* data, size_t bytes, MemoryType type);
  void DeregisterMemory(MemoryRegion* region);
  // Both roads. Afterwards only the destructor may be called.
  void Close();

  // In the reactor, once, after the constructor: from here on housekeeping watches.
  void WatchInLoop();

  // Its user has found what the peer broke.
  void FailFound(const absl::Status& status) { failure_.FailFound(status, kNoLane); }
  // Its user knows now who the peer is: from here on its failure is its communicator's.
  void Adopt() {
    if (setup_.apart != nullptr) setup_.apart->store(false, std::memory_order_release);
  }
  bool failed() const { return failure_.failed(); }
  bool sends() const { return setup_.sends(); }
  // By which others bring sockets for its lanes, until it is closed.
  Link<SocketTaker> taker() { return tie_.To<SocketTaker>(&sockets_); }
  Link<HealthUser> health_user() { return tie_.To<HealthUser>(&news_); }
  // What it counts.
  const EndNumbers& numbers() const { return numbers_; }
  // Before the first request: the communicator's profiler, if it has one, shall learn of each.
  void RecordEvents();
  // A call's arguments were wrong: one WARN per connection, since NCCL calls again and again.
  void ReportMisuse(absl::string_view text);

 protected:
  Comm(ConnectionSetup setup, Direction direction);

  // True exactly when an unfinished request uses `region`, or any where region is null.
  virtual bool InFlight(const MemoryRegion* region) TCPX_REQUIRES(mutex_) = 0;
  // Returns once no thread but the caller's touches the lanes or a user's buffer. May be called again.
  virtual void Quiesce() TCPX_REQUIRES(mutex_) = 0;
  // The last thing before the sockets are left to linger: nothing of this comm is touched by the reactor
  // afterwards.
  virtual void StopWatching() TCPX_REQUIRES(mutex_) = 0;
  // GPU memory is about to be registered for the first time: from now on messages may be staged.
  virtual void OpenStaging(std::unique_ptr<GpuAllowance> slots) TCPX_REQUIRES(mutex_) = 0;
  // Looks for lanes that the network swallows, and has others tried in addition; false: never again. In the reactor.
  virtual bool LooksForSilence(int64_t now_ns) = 0;
  // How much of each lane's stream this end has taken, once no thread moves the lanes; empty: it does not receive.
  virtual std::vector<uint64_t> TakenByLane() TCPX_REQUIRES(mutex_) = 0;
  // For an orderly close: true once nothing is left that only the lanes' stores hold.
  virtual bool MayClose() TCPX_REQUIRES(mutex_) = 0;
  // Once the lanes are there, by their owner's constructor. Fails where one is not sealed that must be.
  // `transfers_max`: most messages that are posted and not over at once.
  void Begin(int transfers_max);

  ConnectionSetup& setup() { return setup_; }
  const ConnectionSetup& setup() const { return setup_; }
  LaneHealing& healing() { return failure_.healing(); }
  ConnectionFailure& failure() { return failure_; }

 private:
  uint64_t MessagesDone() const override { return numbers_.messages(); }
  int CallerThread() const override { return numbers_.caller(); }
  void ContextFailed(const std::string& cause) override { failure_.FailWithCommunicator(cause); }
  Watchdog::Next LooksForSilentLanes(int64_t now_ns);
  void LaneOpened(int lane) override;
  void AwaitLanes();
  void LeaveWatch();

  ConnectionSetup setup_;
  const absl::Status sealed_;  // of all sockets that it was made with
  std::atomic<bool> logged_misuse_{false};
  int transfers_max_ = 0;

 protected:
  Mutex mutex_;
  Tie tie_;

 private:
  ConnectionFailure failure_;
  RegisteredRegions regions_;                           // but for Make under mutex_
  GpuPool* staging_ TCPX_GUARDED_BY(mutex_) = nullptr;  // that messages are staged through
  ProgressCheck progress_;

 protected:
  EventRecorder events_ TCPX_GUARDED_BY(mutex_);
  EndNumbers numbers_;  // what it counts under mutex_
  LaneSockets sockets_;

 private:
  PeerNews news_;
};

}  // namespace tcpx
