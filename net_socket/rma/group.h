// group.h: the ranks of one NCCL communicator that reach into each other's memory.
//
// Purpose: NCCL's collComm. Knows the peers, the registered regions and what is under way; checks what NCCL and what a
//          peer asks for; one error ends it, here and at the peers.
//
// Threads: any; one at a time is inside. Connect waits, Close and CloseContexts for a bounded time.
// States:  open -> failed (the first error sticks).
// Units:   bytes.
// Errors:  as rma_api.h.
#ifndef TCPX_NET_SOCKET_RMA_GROUP_H_
#define TCPX_NET_SOCKET_RMA_GROUP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/mutex.h"
#include "nccl/rma_api.h"
#include "net_socket/rma/region_table.h"
#include "net_socket/rma/request.h"
#include "net_socket/rma/rma_receiver.h"
#include "net_socket/rma/rma_sender.h"

namespace tcpx {

// NCCL's listenComm: its socket becomes the group's, which accepts as long as it lives.
class RmaListen {
 public:
  Context* context = nullptr;
  int device = 0;
  ListenComm* listen = nullptr;  // null: a group has it
};

class RmaGroup final : public RmaReceiver::Owner {
 public:
  // Takes `listen`'s socket.
  RmaGroup(PluginApi* net, RmaListen* listen, absl::Span<void* const> handles, uint32_t rank);
  ~RmaGroup();

  // Returns once the next rank has answered.
  absl::Status Reach();
  Context* context() const { return context_; }

  RmaContexts* OpenContexts(int count);
  void CloseContexts(RmaContexts* contexts);
  RmaHandle Register(void* data, size_t bytes, MemoryType type, bool window);
  void Deregister(RmaHandle handle);
  absl::Status Post(RmaContexts* contexts, int context, const RmaOperation& operation, RmaRequest** request);
  absl::Status Flush(RmaContexts* contexts, RmaRequest** request);
  absl::Status Test(RmaRequest* request, bool* done);
  absl::Status Progress();
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Where NCCL has not called since the last tick: moves the group. True exactly when something moved.
  bool Tick();
  void Close();

 private:
  struct Get {
    uint32_t rank = 0;
    RmaReceiver::Wanted wanted;
    uint64_t bytes = 0;
    RmaRequest* request = nullptr;
  };

  const RmaRegionTable& regions() const override TCPX_NO_THREAD_SAFETY_ANALYSIS { return regions_; }
  absl::Status Greeted(RmaReceiver* by, const RmaRecord& hello) override;
  absl::Status Asked(uint32_t rank, const RmaRecord& get) override;
  RmaReceiver::Wanted* Find(uint32_t rank, const RmaRecord& gotten) override;
  void Answered(uint64_t token) override;
  void PeerClosed(uint32_t rank) override;

  absl::Status Check(const RmaContexts& contexts, int context, const RmaOperation& operation) const
      TCPX_REQUIRES(mutex_);
  absl::Status Put(uint32_t context, const RmaOperation& operation, RmaRequest* request) TCPX_REQUIRES(mutex_);
  absl::Status PutHere(const RmaOperation& operation, RmaRequest* request) TCPX_REQUIRES(mutex_);
  absl::Status Ask(uint32_t context, const RmaOperation& operation, RmaRequest* request) TCPX_REQUIRES(mutex_);
  bool Inline(const RmaSender& sender, const RmaRegion& from, uint64_t bytes) const;
  // The first error sticks; `by` is the connection whose peer has to hear of it, null where that knows.
  absl::Status Fail(const absl::Status& status, Comm* by) TCPX_REQUIRES(mutex_);
  absl::Status Move(bool* moved) TCPX_REQUIRES(mutex_);
  absl::Status Accept(bool* moved) TCPX_REQUIRES(mutex_);
  bool Quiet() const TCPX_REQUIRES(mutex_);
  // A peer has closed, and this rank's windows stay open: nobody shall wait for a signal that can't come.
  absl::Status CheckPeers() TCPX_REQUIRES(mutex_);

  PluginApi* const net_;
  Context* const context_;
  ListenComm* const listen_;
  const uint32_t rank_;
  const bool stages_;
  std::atomic<bool> failed_{false};
  struct {
    std::atomic<uint32_t> now{0};
    uint32_t at_tick = 0;
  } calls_;  // of NCCL

  Mutex mutex_;
  absl::Status status_ TCPX_GUARDED_BY(mutex_);
  RmaRegionTable regions_ TCPX_GUARDED_BY(mutex_);
  RmaRequests requests_ TCPX_GUARDED_BY(mutex_);
  std::deque<RmaSender> senders_ TCPX_GUARDED_BY(mutex_);                        // by rank
  std::vector<std::unique_ptr<RmaReceiver>> receivers_ TCPX_GUARDED_BY(mutex_);  // as they came
  std::vector<bool> gone_ TCPX_GUARDED_BY(mutex_);                               // by rank: has said bye
  struct {
    uint32_t rank = 0;
    int64_t at_ns = 0;               // 0: none has
  } ended_ TCPX_GUARDED_BY(mutex_);  // whoever closed first
  std::vector<std::unique_ptr<RmaContexts>> contexts_ TCPX_GUARDED_BY(mutex_);
  uint32_t next_context_ TCPX_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Get> gets_ TCPX_GUARDED_BY(mutex_);  // by token
  uint64_t next_token_ TCPX_GUARDED_BY(mutex_) = 0;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_RMA_GROUP_H_
