// receive_comm.h: the receiving end of a connection.
//
// Purpose: irecv, test and close of NCCL's receive comm: its requests. Lane 0 is read by the calling thread inside
//          test; bulk lanes by the progress pool or, without one, by the calling thread too.
// Budget:  Receive and Test: no allocation (but a staging buffer when the pool has none), no lock that waits, at most
//          one system call per lane.
// Threads: as Comm.
// States:  of a request: posted -> landed -> reported; an optional one may be reported before it has landed ("early").
//          Its slot then stays taken until the data is there.
// Grouped: a request has a receive per member and is landed when all have. Where more than one member is allowed, each
//          request is announced to the sender (credits.h) with one system call.
// Errors:  as Comm. An orderly end of the peer is an error only for a posted receive that it leaves without its data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net_socket/comm/comm.h"
#include "net_socket/comm/receive_lanes.h"
#include "net_socket/gpu/receive_staging.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/message/request.h"

namespace tcpx {

class ReceiveComm final : public Comm {
 public:
  explicit ReceiveComm(ConnectionSetup setup);

  absl::Status Receive(const ReceiveArgs& args, Request** request);
  absl::Status Test(Request* request, bool* done, int* sizes) override;

 private:
  bool InFlight(const MemoryRegion* region) TCPX_REQUIRES(mutex_) override;
  void Quiesce() TCPX_REQUIRES(mutex_) override;
  void OpenStaging(std::unique_ptr<GpuAllowance> slots) TCPX_REQUIRES(mutex_) override;
  void StopWatching() TCPX_REQUIRES(mutex_) override { lanes_.express().StopTuning(); }
  std::vector<uint64_t> TakenByLane() TCPX_REQUIRES(mutex_) override { return lanes_.TakenByLane(); }
  bool MayClose() TCPX_REQUIRES(mutex_) override { return true; }
  EndLanes* lanes() override { return &lanes_; }
  Flight FlightNow() const override { return table_.FlightNow(); }
  void PeerLeft() override {}
  void PeerIsUnheard(int) override {}  // Only a sender moves lanes.
  void LaneLost(int lane) override;
  bool LooksForSilence(int64_t now_ns) override;
  void LaneResumed(int lane, Seals*) override { lanes_.LeaveAnswering(lane); }
  // Whether this end still waits for lanes that the sender dials again. In the reactor, now and then.
  bool AwaitsLanes();

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

  RequestPool<ReceiveRequest> requests_;
  std::unique_ptr<ReceiveStaging> staging_ TCPX_GUARDED_BY(mutex_);  // null until GPU memory is registered
  PostedReceiveTable table_;
  ReceiveLanes lanes_;
  bool awaits_ = false;                                          // the reactor's: AwaitsLanes is asked
  ReceiveRequest* early_[kRequestsMax] TCPX_GUARDED_BY(mutex_);  // early_count_ of them, oldest first
  int early_count_ TCPX_GUARDED_BY(mutex_) = 0;
  int bulk_posted_ TCPX_GUARDED_BY(mutex_) = 0;  // posted requests with room for more than an express message
};

}  // namespace tcpx
