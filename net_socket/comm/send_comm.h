// send_comm.h: the sending end of a connection.
//
// Purpose: isend, test and close of NCCL's send comm. Messages up to the express size, and all with a single lane, go
//          through lane 0 by the calling thread; longer ones are posted to the striper, whose lanes belong to the
//          progress pool or, without one, to the calling thread too. What lies in GPU memory comes to the lanes in
//          parts (send_staging.h).
// Budget:  Send and Test: no allocation, no lock that waits, at most one system call per batch on lane 0, and one more
//          that asks what was acknowledged while a request waits for that.
// Grouped: where the receiver may group its receives, a message needs a credit (credits.h): without one isend answers
//          "cannot post now", and moves what was posted before. Otherwise sends are eager.
// Threads: as Comm. PeerGone by the thread that reads the reverse direction or hears of the peer's end.
// Errors:  as Comm; an error is returned for every unfinished request and every later call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net_socket/comm/comm.h"
#include "net_socket/comm/lane_steering.h"
#include "net_socket/comm/peer_watch.h"
#include "net_socket/comm/send_lanes.h"
#include "net_socket/comm/sender_healing.h"
#include "net_socket/gpu/send_staging.h"
#include "net_socket/message/request.h"

namespace tcpx {

class SendComm final : public Comm, private PeerWatch::Owner {
 public:
  // In the reactor's loop: watches the lanes for the peer's records and its end.
  explicit SendComm(ConnectionSetup setup);
  ~SendComm() override;

  absl::Status Send(const SendArgs& args, Request** request);
  absl::Status Test(Request* request, bool* done, int* sizes) override;

 private:
  bool InFlight(const MemoryRegion* region) TCPX_REQUIRES(mutex_) override;
  void Quiesce() TCPX_REQUIRES(mutex_) override;
  void OpenStaging(std::unique_ptr<GpuAllowance> slots) TCPX_REQUIRES(mutex_) override;
  void StopWatching() TCPX_REQUIRES(mutex_) override { watch_->Stop(); }
  std::vector<uint64_t> TakenByLane() TCPX_REQUIRES(mutex_) override { return {}; }
  bool MayClose() TCPX_REQUIRES(mutex_) override { return lanes_.express().MayClose(); }
  EndLanes* lanes() override { return &lanes_; }
  Flight FlightNow() const override;
  void PeerLeft() override;
  void PeerIsUnheard(int lane) override { healer_.PeerIsUnheard(lane); }
  void LaneLost(int lane) override { healer_.LaneLostInLoop(lane); }
  bool LooksForSilence(int64_t now_ns) override { return healer_.LooksForSilenceInLoop(now_ns); }
  void LaneResumed(int lane, Seals* seals) override;
  bool LaneBroke(const absl::Status& status, int lane, bool in_order) override;
  // An error for all that still want to send.
  void PeerGone(absl::Status status, int lane, bool in_order) override;

  SenderParts Parts();
  // Sends again what the old socket of lane 0 may have lost, for a caller that has nothing to ask; false: no need.
  bool SendsAgain();
  // When the last of all that is posted was sent; 0: not all is, or nobody knows. `asked` is done.
  int64_t DoneSince(const SendRequest& asked) const TCPX_REQUIRES(mutex_);
  // Messages and staged parts of them that the lanes may hold at once.
  size_t PostedMax() const;
  // Null: no slot, or no credit.
  SendRequest* Prepare(const SendArgs& args) TCPX_REQUIRES(mutex_);
  // A message, or a staged part of one. `next_bytes`: as SendArgs'.
  void PostToLanes(SendRequest* request, size_t next_bytes = 0) TCPX_REQUIRES(mutex_);
  void PostStaged(SendRequest* request, bool on_gpu) TCPX_REQUIRES(mutex_);
  void MoveStaged() TCPX_REQUIRES(mutex_);
  // What a caller that has nothing to post moves.
  void MoveAll() TCPX_REQUIRES(mutex_);
  void FailIfPeerGone() TCPX_REQUIRES(mutex_);
  // True exactly when the lanes find out, or have found out, whether the peer has gone too early for `request`.
  bool LanesDecide(const SendRequest& request) TCPX_REQUIRES(mutex_);
  // The peer has all that was sent, as far as the kernel knows; a lane may still have to notice.
  bool AllAcknowledged();

  uint64_t next_sequence_ TCPX_GUARDED_BY(mutex_) = 0;
  RequestPool<SendRequest> requests_;
  std::unique_ptr<SendStaging> staging_ TCPX_GUARDED_BY(mutex_);  // null until GPU memory is registered
  std::unique_ptr<PeerWatch> watch_;
  PeerLoss peer_loss_;
  SendLanes lanes_;
  SenderHealing healer_;
  LaneSteering steering_;
};

}  // namespace tcpx
