// receive_comm.h: the receiving end of a connection.
//
// Purpose: irecv, test and close of NCCL's receive comm: its requests. Lane 0 is read by the calling thread inside test;
//          bulk lanes by the progress pool or, without one, by the calling thread too.
//
// Budget:  Receive and Test: no allocation (but a staging buffer when the pool has none), no lock that waits, at most
//          one system call per lane.
// Threads: as Comm.
// States:  of a request: posted -> landed -> reported; an optional one may be reported before it has landed ("early").
//          Its slot then stays taken until the data is there.
// Grouped: a request has a receive per member and is landed when all have. Where more than one member is allowed, each
//          request is announced to the sender (credits.h) with one system call.
// Errors:  as Comm. An orderly end of the peer is an error only for a posted receive that it leaves without its data.
#ifndef TCPX_NET_SOCKET_COMM_RECEIVE_COMM_H_
#define TCPX_NET_SOCKET_COMM_RECEIVE_COMM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "net_socket/comm/comm.h"
#include "net_socket/gpu/receive_staging.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/message/request.h"
#include "net_socket/receive/bulk_receive_lane.h"
#include "net_socket/receive/express_receive_lane.h"

namespace tcpx {

class ReceiveComm final : public Comm {
 public:
  explicit ReceiveComm(ConnectionSetup setup);

  absl::Status Receive(const ReceiveArgs& args, Request** request);
  absl::Status Test(Request* request, bool* done, int* sizes) override;

 private:
  int transfers_max() const override { return static_cast<int>(table_.slots()); }
  bool InFlight(const MemoryRegion* region) TCPX_REQUIRES(mutex_) override;
  void Quiesce() TCPX_REQUIRES(mutex_) override;
  void OpenStaging(std::unique_ptr<GpuAllowance> slots) TCPX_REQUIRES(mutex_) override;
  void StopWatching() TCPX_REQUIRES(mutex_) override { express_.StopTuning(); }
  void TellPeer(const absl::Status& status) override;
  Flight FlightNow() const override { return table_.FlightNow(); }
  bool LaneEnded() const override;
  bool HoldsUnread(int lane) const override {
    if (lane == 0) return express_.holds();
    return bulk(lane) != nullptr && bulk(lane)->holds();
  }
  const LaneCounts* CountsOf(int lane) const override {
    if (lane == 0) return &express_.counts();
    return bulk(lane) == nullptr ? nullptr : &bulk(lane)->counts();
  }
  BulkReceiveLane* bulk(int lane) const { return bulk_[static_cast<size_t>(lane) - 1].get(); }
  PoolLane* pool_lane(int lane) override { return lane == 0 || caller_driven_ ? nullptr : bulk(lane); }
  void MakeLane(int lane) TCPX_REQUIRES(mutex_) override;
  void LaneResumed(int lane, Seals* seals) override;
  absl::Status ReplaceSocketOf(int lane, SocketOffer offer) TCPX_REQUIRES(mutex_) override;
  std::vector<uint64_t> TakenByLane() TCPX_REQUIRES(mutex_) override;
  void LaneLost(int) override { healing()->AwaitInLoop(); }
  bool AwaitsLanes() override;
  bool LooksForSilence(int64_t now_ns) override;

  // Moves the lanes on, for `wanted`.
  void Drive(const PostedReceive* wanted) TCPX_REQUIRES(mutex_);
  bool AllEnded() const TCPX_REQUIRES(mutex_);
  bool MayReport(const ReceiveRequest& request) TCPX_REQUIRES(mutex_);
  const PostedReceive* Wanted(const ReceiveRequest& request) const TCPX_REQUIRES(mutex_);
  void Post(const ReceiveArgs& args, ReceiveRequest* request) TCPX_REQUIRES(mutex_);
  PayloadRoute RouteOf(const ReceiveArgs& args, int member) const TCPX_REQUIRES(mutex_);
  // Moves payload on to GPU memory.
  void MoveStaged() TCPX_REQUIRES(mutex_);
  void Report(ReceiveRequest* request, int* sizes) TCPX_REQUIRES(mutex_);
  void Release(ReceiveRequest* request) TCPX_REQUIRES(mutex_);
  void KeepTime(const ReceiveRequest& request) TCPX_REQUIRES(mutex_);
  void EndAllEvents(const ReceiveRequest& request) TCPX_REQUIRES(mutex_);
  void Reclaim() TCPX_REQUIRES(mutex_);

  const bool caller_driven_;
  RequestPool<ReceiveRequest> requests_;
  std::unique_ptr<ReceiveStaging> staging_ TCPX_GUARDED_BY(mutex_);  // null until GPU memory is registered
  PostedReceiveTable table_;
  ExpressReceiveLane express_;                                   // but for what any thread may see under mutex_
  std::vector<std::unique_ptr<BulkReceiveLane>> bulk_;           // null: a lane without a socket yet
  bool complete_ = false;                                        // lanes that are made now are opened late
  ReceiveRequest* early_[kRequestsMax] TCPX_GUARDED_BY(mutex_);  // early_count_ of them, oldest first
  int early_count_ TCPX_GUARDED_BY(mutex_) = 0;
  int bulk_posted_ TCPX_GUARDED_BY(mutex_) = 0;  // posted requests with room for more than an express message
  unsigned passes_ TCPX_GUARDED_BY(mutex_) = 0;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_RECEIVE_COMM_H_
