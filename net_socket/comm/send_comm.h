// send_comm.h: the sending end of a connection.
//
// Purpose: isend, test and close of NCCL's send comm. Messages up to the express size, and all with a single lane, go
//          through lane 0 by the calling thread; longer ones are posted to the striper, whose lanes belong to the
//          progress pool or, without one, to the calling thread too. What lies in GPU memory comes to the lanes in parts
//          (send_staging.h).
//
// Budget:  Send and Test: no allocation, no lock that waits, at most one system call per batch on lane 0, and one more
//          that asks what was acknowledged while a request waits for that.
// Grouped: where the receiver may group its receives, a message needs a credit (credits.h): without one isend answers
//          "cannot post now", and moves what was posted before. Otherwise sends are eager.
// Threads: as Comm. PeerGone by whoever reads the reverse direction or hears of the peer's end.
// Errors:  as Comm; an error is returned for every unfinished request and every later call.
#ifndef TCPX_NET_SOCKET_COMM_SEND_COMM_H_
#define TCPX_NET_SOCKET_COMM_SEND_COMM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net_socket/comm/comm.h"
#include "net_socket/comm/peer_watch.h"
#include "net_socket/gpu/send_staging.h"
#include "net_socket/message/request.h"
#include "net_socket/send/bulk_send_lane.h"
#include "net_socket/send/lane_rates.h"
#include "net_socket/send/send_queue.h"
#include "net_socket/send/stripe.h"

namespace tcpx {

class SendComm final : public Comm, private PeerWatch::Owner, private RedialledLanes {
 public:
  // In the reactor's loop: watches the lanes for the peer's records and its end.
  explicit SendComm(ConnectionSetup setup);
  ~SendComm() override;

  absl::Status Send(const SendArgs& args, Request** request);
  absl::Status Test(Request* request, bool* done, int* sizes) override;
  void WatchInLoop() override;

 private:
  int transfers_max() const override { return requests_.count(); }
  bool InFlight(const MemoryRegion* region) TCPX_REQUIRES(mutex_) override;
  void Quiesce() TCPX_REQUIRES(mutex_) override;
  void OpenStaging(std::unique_ptr<GpuAllowance> slots) TCPX_REQUIRES(mutex_) override;
  void StopWatching() TCPX_REQUIRES(mutex_) override;
  void TellPeer(const absl::Status& status) override;
  Flight FlightNow() const override;
  void PeerEnded() override;
  void PeerLeft(const std::vector<uint64_t>& taken) override;
  void LaneLost(int lane) override;
  void LaneResumed(int lane, Seals* seals) override;
  // Sends again what the old socket of lane 0 may have lost, for a caller who has nothing to ask; false: no need.
  bool SendsAgain();
  bool LooksForSilence(int64_t now_ns) override;
  void PeerIsUnheard(int lane) override;
  // PeerIsUnheard, in the reactor: another socket is tried beside the lane.
  void MovesUnheard(int lane);
  bool LetsGo(int lane, LetGoWhy why, uint32_t* records_taken) override;
  // Lanes are to be opened, moved or closed.
  void SteerLanes();
  // A lane that is to be closed, as soon as it is drained; false: that is done, or is of no use any more.
  bool ClosesLane(int lane);
  void LaneRefused(int lane) override { rates_.Refused(lane - 1); }
  void LeavesPath(int lane, const absl::Status& why) override;
  bool LetsSilentGo(int lane);
  bool LetsReturn(int lane);
  bool LanesOverdue() override;
  void LaneGone(const absl::Status& status, int lane) override;
  PoolLane* pool_lane(int lane) override { return lane == 0 || caller_driven_ ? nullptr : bulk(lane); }
  void MakeLane(int lane) TCPX_REQUIRES(mutex_) override;
  absl::Status ReplaceSocketOf(int lane, SocketOffer offer) TCPX_REQUIRES(mutex_) override;
  bool MayClose() TCPX_REQUIRES(mutex_) override;
  bool LaneBroke(const absl::Status& status, int lane) override { return failure().LoseLane(status, lane); }
  // An error for whoever still wants to send.
  void PeerGone(absl::Status status, int lane, bool in_order) override;
  std::vector<LanePace> Paces() const override;
  const LaneCounts* CountsOf(int lane) const override {
    if (lane == 0) return &counts_;
    return bulk(lane) == nullptr ? nullptr : &bulk(lane)->counts();
  }
  int64_t PaceOf(int lane) const override { return lane == 0 ? 0 : rates_.Get(lane - 1); }
  // When the last of all that is posted was sent; 0: not all is, or nobody knows. `asked` is done.
  int64_t DoneSince(const SendRequest& asked) const TCPX_REQUIRES(mutex_);
  void KeepTime(const SendRequest& request) TCPX_REQUIRES(mutex_);

  BulkSendLane* bulk(int lane) const { return bulk_[static_cast<size_t>(lane) - 1].get(); }
  LaneRates::Settings PilotSettings();
  void CarryOut(const LaneOrder& order);
  // Puts a socket of no use in the place of a drained lane's. False: not now.
  bool Park(int lane);
  // Tells the next connection, and the log, what the pilot has found.
  void NoteFound();
  // Messages and staged parts of them that the lanes may hold at once.
  int PostedMax() const;
  // Null: no slot, or no credit.
  SendRequest* Prepare(const SendArgs& args) TCPX_REQUIRES(mutex_);
  bool NextSequence(int32_t tag, uint64_t* sequence) TCPX_REQUIRES(mutex_);
  // A message, or a staged part of one.
  void PostToLanes(SendRequest* request) TCPX_REQUIRES(mutex_);
  void PostStaged(SendRequest* request, bool on_gpu) TCPX_REQUIRES(mutex_);
  void MoveStaged() TCPX_REQUIRES(mutex_);
  void PostExpress(SendRequest* request) TCPX_REQUIRES(mutex_);
  void PostBulk(SendRequest* request) TCPX_REQUIRES(mutex_);
  // Sends at once a short message that nothing else waits for, copied beside its header.
  void SendLone(SendRequest* request) TCPX_REQUIRES(mutex_);
  // Lane 0: sends what is queued, as far as the socket takes it.
  void Flush() TCPX_REQUIRES(mutex_);
  // As sendmsg(2), on lane 0.
  ssize_t SendZero(iovec* iov, int count) TCPX_REQUIRES(mutex_);
  // True when more may be sent at once.
  bool Took(ssize_t sent, size_t offered) TCPX_REQUIRES(mutex_);
  void Drive() TCPX_REQUIRES(mutex_);
  // What a caller moves who has nothing to post.
  void MoveAll() TCPX_REQUIRES(mutex_);
  void FailIfPeerGone() TCPX_REQUIRES(mutex_);
  // True exactly when the lanes find out, or have found out, whether the peer has gone too early for `request`.
  bool LanesDecide(const SendRequest& request) TCPX_REQUIRES(mutex_);
  // Lane 0's socket has broken with this errno.
  void LaneZeroBroke(int err) TCPX_REQUIRES(mutex_);
  // False: nothing new may be sent on lane 0 now.
  bool ReadyToFlush() TCPX_REQUIRES(mutex_);
  // The peer has all that was sent, as far as the kernel knows; a lane may still have to notice.
  bool AllAcknowledged() const;
  // LanesDecide, where the peer has said how much of each lane's stream it had when it closed.
  bool LanesDecide(const SendRequest& request, const std::vector<uint64_t>& taken) TCPX_REQUIRES(mutex_);

  const size_t express_bytes_;
  const bool caller_driven_;
  const bool seals_;  // nothing is sent in the clear
  uint64_t next_sequence_ TCPX_GUARDED_BY(mutex_) = 0;
  RequestPool<SendRequest> requests_;
  const std::unique_ptr<HeldFrames> held_ TCPX_PT_GUARDED_BY(mutex_);  // of lane 0; null: lanes don't heal
  bool zero_lost_ TCPX_GUARDED_BY(mutex_) = false;                     // lane 0 waits for another socket
  std::unique_ptr<Sealer> sealer_ TCPX_GUARDED_BY(mutex_);             // of lane 0's socket; null: it is not sealed
  SendQueue queue_ TCPX_GUARDED_BY(mutex_);
  LaneCounts counts_;                                             // of lane 0; written under mutex_
  std::unique_ptr<SendStaging> staging_ TCPX_GUARDED_BY(mutex_);  // null until GPU memory is registered
  std::unique_ptr<Striper> striper_;                              // null with a single lane
  LaneRates rates_;
  IdleLanes idle_;
  std::vector<std::unique_ptr<BulkSendLane>> bulk_;  // null: a lane without a socket yet
  // By lane, in the reactor: it is given another socket on purpose; it is closed, and has its old one still.
  std::vector<bool> moving_;
  std::vector<bool> parking_;
  std::vector<bool> offered_park_;
  LanePolicy::Found found_;  // the latest that was noted
  size_t first_pumped_ TCPX_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<PeerWatch> watch_;
  PeerLoss peer_loss_;
  bool lanes_asked_ TCPX_GUARDED_BY(mutex_) = false;  // LanesDecide
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_SEND_COMM_H_
