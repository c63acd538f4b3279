// bulk_receive_lane.h: one lane that brings chunks of bulk messages.
//
// Purpose: glue between the pure ReceiveLane and whoever moves bytes: a progress thread through its engine (the *InLoop
//          functions), or the calling thread with plain calls (Pump).
//
// Threads: a lane attached to the pool is its thread's; else the calling thread's, under the comm's mutex. TakeParked
//          and TakeStalled are the calling thread's side: two atomics.
// Lifetime: owned by its connection, which detaches it before it goes. Borrows the socket and the table.
// Errors:  to LaneOwner::FailLane.
#ifndef TCPX_NET_SOCKET_RECEIVE_BULK_RECEIVE_LANE_H_
#define TCPX_NET_SOCKET_RECEIVE_BULK_RECEIVE_LANE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "net_socket/engine/progress_pool.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/receive/receive_lane.h"
#include "net_socket/receive/stream_intake.h"

namespace tcpx {

class BulkReceiveLane final : public PoolLane {
 public:
  struct Settings {
    int fd = -1;
    int lane = 1;
    bool opened = false;  // later than its connection
  };

  BulkReceiveLane(LaneOwner* owner, const Settings& settings, PostedReceiveTable* table, StagePool* stages);

  // Before the lane is moved: its socket is sealed.
  void OpenBy(std::unique_ptr<Opener> opener) { intake_.OpenBy(std::move(opener)); }

  void AdvanceInLoop(Engine* engine) override;
  void CompleteInLoop(const Completion& completion) override;

  // For the calling thread: reads what is there, once.
  void Pump();
  // The same: the lane goes on with another socket. Not OK: it can't.
  absl::Status Replace(SocketOffer offer);
  // Messages below `posted` have receives now: true exactly when the lane was parked on one of them and must be kicked.
  bool TakeParked(uint64_t posted);
  // True exactly when the lane had no place for payload (PayloadSink) and must be kicked, now that there may be one.
  bool TakeStalled() {
    return stalled_.load(std::memory_order_acquire) && stalled_.exchange(false, std::memory_order_acq_rel);
  }
  // Bytes of the stream that have come, once no thread moves the lane.
  uint64_t taken() const { return intake_.taken(); }
  // From any thread.
  const LaneCounts& counts() const { return receive_.counts(); }
  // Bytes lie here that nobody has passed on; not of a lane that a progress thread moves. From any thread.
  bool holds() const { return receive_.holds() || intake_.holds(); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  static constexpr uint64_t kNotParked = ~uint64_t{0};

  void Received(int result);
  // What has come and was not read: of an earlier socket, or of a sealed one. Below 0: it is not the peer's.
  ssize_t ReadHeld();
  // The socket has ended (0), or broken with an errno.
  void Ended(int err);
  // True where the lane can't go on now.
  bool Waits();
  void Digested();
  // The lane rests, and needs none until it gets another one.
  void DropSocket();

  LaneOwner* const owner_;
  const int lane_;
  const bool opened_;
  PostedReceiveTable* const table_;
  ReceiveLane receive_;
  StreamIntake intake_;
  bool lost_ = false;  // waits for another socket
  int lost_by_ = 0;    // errno, 0: an end
  bool drops_socket_ = false;
  bool cancelled_ = false;  // what the old socket still had with the engine
  std::atomic<uint64_t> parked_at_{kNotParked};
  std::atomic<bool> stalled_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_RECEIVE_BULK_RECEIVE_LANE_H_
