// bulk_receive_lane.h: one lane that brings chunks of bulk messages.
//
// Purpose: glue between a ReceiveStream and what moves bytes: a progress thread through its engine (the *InLoop
//          functions), or the calling thread with plain calls (Pump).
// Threads: a lane attached to the pool is its thread's; else the calling thread's, under the comm's mutex. TakeParked
//          and TakeStarved are the calling thread's side: two atomics.
// Lifetime: owned by its connection, which detaches it before it goes. Borrows the socket and the table.
// Errors:  to LaneOwner::FailLane.
#pragma once

#include <atomic>
#include <cstdint>

#include "net_socket/engine/progress_pool.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/receive/receive_stream.h"

namespace tcpx {

class BulkReceiveLane final : public PoolLane {
 public:
  BulkReceiveLane(LaneOwner* owner, const ReceiveStream::Settings& settings, Destination* destination,
                  StagePool* stages);

  void AdvanceInLoop(Engine* engine) override;
  void CompleteInLoop(const Completion& completion) override;

  // For the calling thread: reads what is there, once.
  void Pump();
  // The latest reads found nothing, and nothing is under way.
  bool idle() { return in_vain_ >= kIdleReads && stream_.frames().between_frames() && !stream_.intake().cut(); }
  // The same: the lane goes on with another socket. Not OK: it can't.
  absl::Status Replace(SocketOffer offer);
  // Messages below `posted` have receives now: true exactly when the lane was parked on one of them and must be kicked.
  bool TakeParked(uint64_t posted);
  // True exactly when the lane had no place for payload (PayloadSink) and must be kicked, now that there may be one.
  bool TakeStarved() {
    return starved_.load(std::memory_order_acquire) && starved_.exchange(false, std::memory_order_acq_rel);
  }
  // What is not from any thread: once no thread moves the lane.
  ReceiveStream& stream() { return stream_; }
  // From any thread.
  bool parked() const { return parked_at_.load(std::memory_order_relaxed) != kNotParked; }

 private:
  static constexpr uint64_t kNotParked = ~uint64_t{0};
  static constexpr int kIdleReads = 16;

  void Received(int result);

  LaneOwner* const owner_;
  Destination* const destination_;
  ReceiveStream stream_;
  int in_vain_ = 0;         // the latest reads of Pump, up to kIdleReads
  bool cancelled_ = false;  // what the old socket still had with the engine
  std::atomic<uint64_t> parked_at_{kNotParked};
  std::atomic<bool> starved_{false};
};

}  // namespace tcpx
