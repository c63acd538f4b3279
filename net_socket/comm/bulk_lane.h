// bulk_lane.h: the lanes that carry chunks of bulk messages, for both ways of driving them.
//
// Purpose: glue between the pure state machines (Striper, ReceiveLane) and whoever moves bytes: a progress thread
//          through its engine (the *InLoop functions), or the calling thread with plain calls (Pump).
//
// Threads: a lane attached to the pool is its thread's; else the calling thread's, under the comm's mutex. Kick is the
//          calling thread's side: two atomics and, where the lane was waiting, a push.
// Lifetime: owned by its comm, which detaches it before it goes.
// Errors:  to Comm::Fail.
#ifndef TCPX_NET_SOCKET_COMM_BULK_LANE_H_
#define TCPX_NET_SOCKET_COMM_BULK_LANE_H_

#include <atomic>
#include <cstdint>

#include "net_socket/engine/progress_pool.h"
#include "net_socket/receive/receive_lane.h"
#include "net_socket/send/lane_rate.h"
#include "net_socket/send/registered_buffers.h"
#include "net_socket/send/stripe.h"
#include "net_socket/send/zero_copy.h"

namespace tcpx {

class Comm;
class MemoryRegion;

class BulkSendLane final : public PoolLane {
 public:
  // `rates` holds one entry per bulk lane of the connection; this lane writes its own.
  BulkSendLane(Comm* comm, int lane, Striper* striper, LaneRates* rates);

  void AdvanceInLoop(Engine* engine) override;
  void CompleteInLoop(const Completion& completion) override;
  void AbortInLoop(Engine* engine) override;
  void LeaveInLoop(Engine* engine) override;

  // For the calling thread: sends until the lane holds enough unsent data or nothing is left.
  void Pump();
  // New work was posted: true exactly when the lane was waiting for it and must be kicked.
  bool TakeIdle() { return idle_.load(std::memory_order_seq_cst) && idle_.exchange(false, std::memory_order_seq_cst); }
  // The region goes, and nothing is sent from it any more: true exactly when the lane must be kicked. From any thread.
  bool Forget(const MemoryRegion& region);
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  // True when the lane may take another chunk; else *retry_ns says when to ask again (0: when the socket is writable).
  bool HasRoom(int64_t* retry_ns);
  // Takes a look at how the lane drains; returns what it holds.
  int64_t Look(int64_t now);
  // With nothing to pull: looks on while the lane holds data, so that a slow flow is found out although the others wait
  // for it to drain. Returns when to look again, 0 for not at all.
  int64_t LookWhileHeld();
  bool PullChunk();
  void RefreshRate(int64_t now);
  int Gather(iovec* iov) const;
  void Advance(size_t bytes);
  void CountSent(size_t bytes);
  bool WaitForWork();
  // Waits for work, for room, or pulls: true when there is a chunk to send.
  bool NextChunkInLoop(Engine* engine);
  // The registered buffer that holds the payload of chunk_, if it is to be sent from there.
  int BufferOf(Engine* engine);
  bool SubmitPinned(Engine* engine);
  void CompletePinned(PinnedChunk* pinned, const Completion& completion);

  Comm* const comm_;
  const int lane_;
  Striper* const striper_;
  LaneRates* const rates_;
  LaneRate rate_;
  int64_t rtt_asked_ns_ = 0;
  int64_t looked_ns_ = 0;    // the latest look
  bool continuous_ = false;  // a chunk was being sent ever since the look before
  bool watching_ = false;    // the lane may hold data that no look has seen drain
  std::atomic<bool> idle_{false};
  Chunk chunk_;       // being sent; no request: none
  size_t taken_ = 0;  // of header and payload
  std::atomic<uint64_t> bytes_sent_{0};
  char header_[kHeaderBytes];

  const bool paced_by_rate_;
  ZeroCopyPolicy zero_copy_;
  PinnedChunks pinned_;
  RegisteredBuffers registered_;
  int buffer_ = kNoBuffer;          // of chunk_
  PinnedChunk* rest_of_ = nullptr;  // chunk_ is the rest of this one
  bool sending_ = false;            // a result is still to come, op_'s or a pinned chunk's
};

class BulkReceiveLane final : public PoolLane {
 public:
  BulkReceiveLane(Comm* comm, int lane, PostedReceiveTable* table);

  void AdvanceInLoop(Engine* engine) override;
  void CompleteInLoop(const Completion& completion) override;

  // For the calling thread: reads what is there, once.
  void Pump();
  // Messages below `posted` have receives now: true exactly when the lane was parked on one of them and must be kicked.
  bool TakeParked(uint64_t posted);
  // True exactly when the lane had no place for payload (PayloadSink) and must be kicked, now that there may be one.
  bool TakeStalled() {
    return stalled_.load(std::memory_order_acquire) && stalled_.exchange(false, std::memory_order_acq_rel);
  }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  static constexpr uint64_t kNotParked = ~uint64_t{0};

  void Received(int result);
  void Digested();

  Comm* const comm_;
  const int lane_;
  PostedReceiveTable* const table_;
  ReceiveLane receive_;
  std::atomic<uint64_t> parked_at_{kNotParked};
  std::atomic<bool> stalled_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_BULK_LANE_H_
