// receive_comm.h: the receiving end of a connection.
//
// Purpose: irecv, test and close of NCCL's receive comm. Lane 0 is read by the calling thread inside test; bulk lanes
// by the
//          progress pool or, without one, by the calling thread too.
//
// Budget:  Receive and Test: no allocation (but a staging buffer when the pool has none), no lock that waits, at most
// one
//          system call per lane.
// Threads: as Comm.
// States:  of a request: posted -> landed -> reported; an optional one may be reported before it has landed ("early").
//          Its slot then stays taken until the data is there.
// Grouped: a request has a receive per member and is landed when all have. Where more than one member is allowed, each
//          request is announced to the sender (credits.h) with one system call.
// Errors:  as Comm. An orderly end of the peer is an error only for a posted receive that it leaves without its data.
#ifndef TCPX_NET_SOCKET_COMM_RECEIVE_COMM_H_
#define TCPX_NET_SOCKET_COMM_RECEIVE_COMM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "net_socket/comm/comm.h"
#include "net_socket/gpu/receive_staging.h"
#include "net_socket/message/credits.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/message/request.h"
#include "net_socket/receive/bulk_receive_lane.h"
#include "net_socket/receive/pattern_tuning.h"
#include "net_socket/receive/receive_lane.h"

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
  void StopWatching() TCPX_REQUIRES(mutex_) override;
  void TellPeer(const absl::Status& status) override;
  Flight FlightNow() const override { return table_.FlightNow(); }
  bool LaneEnded() const override;
  bool HoldsUnread(int lane) const override {
    if (lane == 0) return lane_zero_.holds() || zero_holds_;
    const auto& bulk = bulk_[static_cast<size_t>(lane) - 1];
    return bulk != nullptr && bulk->holds();
  }
  const LaneCounts* CountsOf(int lane) const override {
    if (lane == 0) return &lane_zero_.counts();
    const auto& bulk = bulk_[static_cast<size_t>(lane) - 1];
    return bulk == nullptr ? nullptr : &bulk->counts();
  }
  void KeepTime(const ReceiveRequest& request) TCPX_REQUIRES(mutex_);
  PoolLane* pool_lane(int lane) override {
    return lane == 0 || caller_driven_ ? nullptr : bulk_[static_cast<size_t>(lane) - 1].get();
  }
  void MakeLane(int lane) TCPX_REQUIRES(mutex_) override;
  void LaneResumed(int lane, Seals* seals) override;
  absl::Status ReplaceSocketOf(int lane, SocketOffer offer) TCPX_REQUIRES(mutex_) override;
  std::vector<uint64_t> TakenByLane() TCPX_REQUIRES(mutex_) override;
  // Only a sender moves lanes.
  void PeerIsUnheard(int) override {}
  void LaneLost(int lane) override;
  // Waits for lanes that the sender dials again; false: no more.
  bool AwaitsLanes();
  bool LooksForSilence(int64_t now_ns) override;
  // Lane 0's socket has ended (0), or broken with an errno.
  void LaneZeroEnded(int err) TCPX_REQUIRES(mutex_);
  bool LaneZeroWaits() TCPX_REQUIRES(mutex_);

  // Moves the lanes on, for `wanted`.
  void Drive(const PostedReceive* wanted) TCPX_REQUIRES(mutex_);
  void PumpLaneZero(const PostedReceive* wanted) TCPX_REQUIRES(mutex_);
  // A read of lane 0 completed so many messages.
  void NotePattern(int messages) TCPX_REQUIRES(mutex_);
  bool AllEnded() const TCPX_REQUIRES(mutex_);
  bool MayReport(const ReceiveRequest& request) TCPX_REQUIRES(mutex_);
  const PostedReceive* Wanted(const ReceiveRequest& request) const TCPX_REQUIRES(mutex_);
  void Post(const ReceiveArgs& args, ReceiveRequest* request) TCPX_REQUIRES(mutex_);
  PayloadRoute RouteOf(const ReceiveArgs& args, int member) const TCPX_REQUIRES(mutex_);
  // Moves payload on to GPU memory.
  void MoveStaged() TCPX_REQUIRES(mutex_);
  // Not OK: they can't be sealed.
  absl::Status SendCredits() TCPX_REQUIRES(mutex_);
  // The same; the connection fails then. Not with a link held.
  void SayCredits() TCPX_REQUIRES(mutex_);
  bool CantSeal();
  // As send(2), on lane 0.
  ssize_t SayOnZero(const char* data, size_t bytes);
  void SayErrorOnZero(const char* record, size_t bytes) TCPX_REQUIRES(seal_mutex_);
  void LeaveAnswering(int lane);
  void Report(ReceiveRequest* request, int* sizes) TCPX_REQUIRES(mutex_);
  void Release(ReceiveRequest* request) TCPX_REQUIRES(mutex_);
  void EndAllEvents(const ReceiveRequest& request) TCPX_REQUIRES(mutex_);
  void Reclaim() TCPX_REQUIRES(mutex_);

  const bool caller_driven_;
  RequestPool<ReceiveRequest> requests_;
  std::unique_ptr<ReceiveStaging> staging_ TCPX_GUARDED_BY(mutex_);  // null until GPU memory is registered
  PostedReceiveTable table_;
  ReceiveLane lane_zero_;
  StreamIntake intake_ TCPX_GUARDED_BY(mutex_);     // lane 0's
  Relaxed<bool> zero_holds_ = false;                // it has what nobody has read
  bool zero_lost_ TCPX_GUARDED_BY(mutex_) = false;  // lane 0 waits for another socket
  int zero_lost_by_ TCPX_GUARDED_BY(mutex_) = 0;    // errno, 0: an end
  PatternDetector pattern_ TCPX_GUARDED_BY(mutex_);
  PatternTuning tuning_ TCPX_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<BulkReceiveLane>> bulk_;  // null: a lane without a socket yet
  bool stands_ = false;                                 // lanes that are made now are opened late
  std::unique_ptr<CreditQueue> credits_;                // null: receives are not grouped
  std::atomic<bool> credits_wait_{false};               // a record may be on the wire in part
  bool sealed_ = false;                                 // its lanes are; constant once made
  // What lane 0 says goes by it. Its mutex because TellPeer may come from any thread; held from lane 0's next socket until
  // that one's answer has gone.
  Mutex seal_mutex_;
  std::unique_ptr<Sealer> sealer_ TCPX_GUARDED_BY(seal_mutex_);
  ReceiveRequest* early_[kRequestsMax] TCPX_GUARDED_BY(mutex_);  // early_count_ of them, oldest first
  int early_count_ TCPX_GUARDED_BY(mutex_) = 0;
  int bulk_posted_ TCPX_GUARDED_BY(mutex_) = 0;  // posted requests with room for more than an express message
  unsigned passes_ TCPX_GUARDED_BY(mutex_) = 0;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_RECEIVE_COMM_H_
