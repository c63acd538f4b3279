// group.h: one rank's end of a group: the ranks of an NCCL communicator that access each other's memory.
//
// Purpose: NCCL's collComm. Holds the peers, the registered regions and the operations in progress, and checks what
//          NCCL and the peers ask for. The first error ends the group, here and at the peers.
// Threads: any; a mutex admits one at a time. Reach waits; Close, CloseContexts and Deregister wait for a bounded time.
// States:  open -> failed (the first error sticks).
// Units:   bytes.
// Errors:  as rma_api.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "net_socket/rma/group_gpu.h"
#include "net_socket/rma/group_peers.h"
#include "net_socket/rma/request.h"
#include "net_socket/rma/rma_counts.h"
#include "net_socket/rma/rma_receiver.h"
#include "net_socket/rma/rma_sender.h"

namespace tcpx {

// NCCL's listenComm. The group takes its socket, and accepts on it for as long as the group lives.
class RmaListen {
 public:
  Context* context = nullptr;
  int device = 0;
  ListenComm* listen = nullptr;  // null: a group has taken it
};

// How long a group waits for whom, where it counts, and what memory it reaches. [ns]
struct RmaLimits {
  int64_t linger_ns = 0;         // a group's end, for what is queued; a region's, for gets of it
  int64_t hello_timeout_ns = 0;  // for the first record of a connection
  int64_t peer_timeout_ns = 0;   // for windows of this rank to close, once a peer has closed in order
  bool spread_errors = true;     // a connection that fails takes the communicator's others with it
  RmaCounts* counts = nullptr;   // of the process; null: nobody asks
  GpuHub* gpu = nullptr;         // null: host memory only
};

// What a group says once there may be none.
inline absl::Status LibraryEnds() { return absl::FailedPreconditionError("the library is being unloaded"); }

class RmaGroup final : public RmaReceiver::Owner {
 public:
  // Takes `listen`'s socket.
  RmaGroup(PluginApi* net, const RmaLimits& limits, RmaListen* listen, absl::Span<void* const> handles, uint32_t rank);
  ~RmaGroup();

  // Connects to the next rank and waits until it has answered: a ring that can't be reached fails here; and so does the
  // group once `over` says that the library ends.
  absl::Status Reach(const std::atomic<bool>& over);

  // As nccl/rma_api.h says:
  RmaContexts* OpenContexts(int count, int traffic_class);
  void CloseContexts(RmaContexts* contexts);
  absl::StatusOr<RmaHandle> Register(void* data, size_t bytes, MemoryType type, RmaUse use);
  void Deregister(RmaHandle handle);
  absl::Status Post(RmaContexts* contexts, int context, const RmaOperation& operation, RmaRequest** request);
  absl::Status Flush(RmaContexts* contexts, RmaRequest** request);
  absl::Status Test(RmaRequest* request, bool* done);
  absl::Status Progress();
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Moves the group if no call of NCCL's has since the last tick. True in *moved where something moved. Returns whether
  // copies of GPU memory may be under way, which only this looks at.
  bool Tick(bool* moved);
  void Close();

 private:
  const RmaRegionTable& regions() const override TCPX_NO_THREAD_SAFETY_ANALYSIS { return regions_; }
  // As rma_receiver.h says:
  absl::Status Greeted(RmaReceiver* by, const RmaRecord& hello) override;
  absl::Status Asked(uint32_t rank, const RmaRecord& get) override;
  RmaReceiver::Wanted* Find(uint32_t rank, const RmaRecord& gotten) override TCPX_NO_THREAD_SAFETY_ANALYSIS {
    return gets_.Find(rank, gotten);
  }
  void Answered(uint64_t token) override TCPX_NO_THREAD_SAFETY_ANALYSIS { gets_.Answered(token); }
  void PeerClosed(uint32_t rank, bool orderly) override;

  absl::Status CheckPlace(const RmaContexts& contexts, int context, uint32_t rank) const TCPX_REQUIRES(mutex_);
  absl::Status Start(RmaContexts* contexts, int context, const RmaOperation& operation, RmaRequest** request)
      TCPX_REQUIRES(mutex_);
  // The first error sticks. `by`: the connection whose peer gets it; null: any.
  absl::Status Fail(const absl::Status& status, Comm* by, const char* where = "") TCPX_REQUIRES(mutex_);
  // NCCL asked for something invalid. `rank` gets the error too, but is not to blame.
  absl::Status FailHere(const absl::Status& status, uint32_t rank) TCPX_REQUIRES(mutex_);
  // Sends the error to the peer of `by`, and to all others unless that connection spreads it (TCPX_SPREAD_ERRORS).
  void TellPeers(const absl::Status& told, Comm* by) TCPX_REQUIRES(mutex_);
  absl::Status Move(bool* moved, bool by_turns = false) TCPX_REQUIRES(mutex_);
  absl::Status MoveReceivers(bool* moved, bool by_turns) TCPX_REQUIRES(mutex_);
  absl::Status MoveFor(const RmaRequest& request) TCPX_REQUIRES(mutex_);
  absl::Status Accept(bool* moved) TCPX_REQUIRES(mutex_);
  void CloseStranger(std::ptrdiff_t index, const absl::Status& why) TCPX_REQUIRES(mutex_);
  bool Quiet() const TCPX_REQUIRES(mutex_);
  void WarnOfWaiting() const TCPX_REQUIRES(mutex_);
  void EndContexts(RmaContexts* contexts) TCPX_REQUIRES(mutex_);
  // Returns once nothing that the GPU was given before touches memory, or with the group failed. Gives the mutex up
  // meanwhile.
  void AwaitGpu() TCPX_REQUIRES(mutex_);

  PluginApi* const net_;
  const RmaLimits limits_;
  Context* const context_;
  ListenComm* const listen_;
  const uint32_t rank_;
  std::atomic<bool> failed_{false};
  RmaGroupCounts counts_;  // written under the mutex
  struct {
    std::atomic<uint32_t> count{0};
    uint32_t at_tick = 0;
    uint32_t tests_since = 0;
    size_t idle_turn = 0;  // of the receivers, in steps
  } moves_;                // of everything

  Mutex mutex_;
  absl::Status status_ TCPX_GUARDED_BY(mutex_);
  RmaRegionTable regions_ TCPX_GUARDED_BY(mutex_);
  RmaRequests requests_ TCPX_GUARDED_BY(mutex_);
  GroupGpu gpu_ TCPX_GUARDED_BY(mutex_);
  std::deque<RmaSender> senders_ TCPX_GUARDED_BY(mutex_);                        // by rank
  std::vector<std::unique_ptr<RmaReceiver>> receivers_ TCPX_GUARDED_BY(mutex_);  // as they came
  RmaStrangers strangers_ TCPX_GUARDED_BY(mutex_);
  GroupPeers peers_ TCPX_GUARDED_BY(mutex_);
  PendingGets gets_ TCPX_GUARDED_BY(mutex_);
  struct {
    std::vector<std::unique_ptr<RmaContexts>> all;
    uint32_t next = 0;  // its number
  } contexts_ TCPX_GUARDED_BY(mutex_);
  struct {
    int64_t left_ns = 0;  // what is left of TCPX_LINGER for closing
    bool orderly = true;  // no window was open when the last contexts were closed
  } ending_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx
