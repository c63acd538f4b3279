// comm.h: what a send comm and a receive comm have in common: lanes, one sticky error, memory regions, closing.
//
// Purpose: a connection's two ends are a SendComm and a ReceiveComm. Here is all that does not depend on the direction.
//
// Threads: NCCL's calls take mutex_: isend, irecv and test only try it (a comm being closed or deregistered answers
//          "not yet"), deregMr and close wait for it. Lanes of the progress pool and the reactor never take it; they
//          touch the striper, the receives and Fail. Housekeeping and other connections reach a comm through its
//          CommLink.
// States:  open -> failed (first error sticks) -> closed. Close takes the orderly road exactly when nothing failed and
//          no request is unfinished; else lanes are reset.
// Lifetime: a request, a region and a lane die with their comm. Close, then delete.
// Errors:  Fail's first status is what every later call returns. The peer hears of it through the health socket, and so
//          do the other connections of the communicator (FailureGroup).
#ifndef TCPX_NET_SOCKET_COMM_COMM_H_
#define TCPX_NET_SOCKET_COMM_COMM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nccl/plugin_api.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/failure_report.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/gpu/gpu_pool.h"
#include "net_socket/health/comm_link.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/slow_lanes.h"
#include "net_socket/message/flight.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/message/memory_region.h"
#include "net_socket/message/request.h"
#include "net_socket/message/transfer_events.h"

namespace tcpx {

// Messages that were reported done, and their bytes; and how often a lane became slow for long (slow_lanes.h).
struct CommTally {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t slow_lanes = 0;
};

class Comm : public LaneOwner, private Watched {
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

  absl::Status status() const;
  // The first failure wins; later ones are dropped. From any thread. A silent one writes no log line.
  // kQuiet: for what follows from a failure that was told already.
  enum class Noise { kWarn, kQuiet, kSilent };
  void Fail(absl::Status status, int lane, Noise noise = Noise::kWarn);

  virtual bool sends() const = 0;
  // From any thread.
  CommTally tally() const {
    return {messages_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed), slow_lanes_};
  }
  // Before the first request: the communicator's profiler, if it has one, shall learn of each.
  void RecordEvents();
  // A call's arguments were wrong: one WARN per connection, since NCCL calls again and again.
  void ReportMisuse(absl::string_view text);

  const ConnectionSetup& setup() const { return setup_; }
  const Communicator& communicator() const { return *setup_.communicator; }
  int lane_fd(int lane) const { return setup_.lanes[lane].fd.get(); }
  const PathProfile& path() const { return setup_.lanes[0].profile; }
  int lane_count() const { return static_cast<int>(setup_.lanes.size()); }
  Runtime* runtime() const { return setup_.runtime; }

 protected:
  explicit Comm(ConnectionSetup setup);

  virtual const char* role() const = 0;  // "send" or "receive"
  virtual bool receives() const = 0;
  // Most messages that are posted and not over at once.
  virtual int transfers_max() const = 0;
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
  // The pace of the lanes that carry bulk messages, by lane index from 1 on; empty where there is none to compare. In
  // the reactor.
  virtual std::vector<LanePace> Paces() const { return {}; }
  // True once a lane of the peer's has ended in order: nothing more comes on it. From any thread.
  virtual bool LaneEnded() const { return false; }
  // A region of GPU memory is about to be registered: from now on messages may be staged. Under mutex_.
  virtual absl::Status StageThrough(GpuPool* pool) = 0;
  // What a call on a failed comm returns. Under mutex_.
  absl::Status Refusal();

  void FailLane(absl::Status status, int lane) final { Fail(std::move(status), lane); }
  void PeerDied(const absl::Status& status) override;
  void PeerEnded() override { peer_ended_.store(true, std::memory_order_relaxed); }
  void PeerFailed(const std::string& cause) override;
  void ContextFailed(const std::string& cause) override;
  void CheckProgress(int64_t now_ns) override;

  // A request was reported done. Under mutex_, so that no locked instruction is needed.
  void Count(size_t bytes) {
    messages_.store(messages_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  // Of one isend, or one buffer of an irecv; null unless a profiler listens. `slot` is below transfers_max().
  TransferEvents* BeginEvents(size_t slot, void* parent) {
    return recorder_ == nullptr ? nullptr : recorder_->Begin(slot, parent);
  }
  // All of the message goes over `lane`: told at once. A null `events` is a no-op.
  void CountEvents(TransferEvents* events, int lane, uint64_t message_bytes) {
    if (events != nullptr) recorder_->CountWhole(events, lane, message_bytes);
  }
  // Not of a failed connection: NCCL 2.26 and 2.27 drop the operation that got the error, and with it the parents of
  // requests that are never tested again.
  void PublishEvents() {
    if (recorder_ != nullptr && !failed()) recorder_->Publish();
  }
  // Right before a request is reported done, early or not, or its error is returned. A repetition is a no-op.
  void EndEvents(TransferEvents* events) {
    if (events != nullptr) recorder_->Stop(events);
  }

  std::mutex mutex_;

 private:
  // `cause` is what others are told; empty: made of the status.
  void FailFor(std::string cause, absl::Status status, int lane, Noise noise);
  // True exactly when the communicator fails with this comm. Else *cause becomes its first cause, and *noise quiet.
  bool JoinFailure(std::string* cause, Noise* noise);
  // Null: host memory.
  absl::StatusOr<GpuPool*> FindPool(const void* data, MemoryType type) const;
  Trouble TroubleOf(absl::string_view what, int lane) const;
  void LookAtLanes(int64_t now_ns);
  void LookAtRequests(int64_t now_ns);
  void LookAtPaces(int64_t now_ns);
  void LeaveWatch();

  std::atomic<uint64_t> messages_{0};
  std::atomic<uint64_t> bytes_{0};
  Relaxed<uint64_t> slow_lanes_{0};
  ConnectionSetup setup_;
  std::atomic<bool> told_of_misuse_{false};
  std::unique_ptr<EventRecorder> recorder_;  // null: no profiler; under mutex_, but for what its lanes count
  mutable std::mutex status_mutex_;
  absl::Status status_;
  std::string told_;           // the line of the log; stands still once failed() is true
  int64_t told_again_ns_ = 0;  // under mutex_

  const std::shared_ptr<CommLink> link_;
  std::atomic<bool> peer_ended_{false};
  std::vector<LaneLiveness> liveness_;                                               // by lane; in the reactor
  SlowLanes slowness_;                                                               // in the reactor
  StallWatch stall_;                                                                 // in the reactor
  absl::flat_hash_map<const MemoryRegion*, std::unique_ptr<MemoryRegion>> regions_;  // under mutex_
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_COMM_H_
