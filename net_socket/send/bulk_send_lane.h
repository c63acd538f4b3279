// bulk_send_lane.h: one lane that carries chunks of bulk messages away.
//
// Purpose: glue between the pure Striper and whoever moves bytes: a progress thread through its engine (the *InLoop
//          functions), or the calling thread with plain calls (Pump).
//
// Threads: a lane attached to the pool is its thread's; else the calling thread's, under the comm's mutex.
// Lifetime: owned by its connection, which detaches it before it goes. Borrows all that it is given.
// Units:   bytes.
// Errors:  to LaneOwner::FailLane.
#ifndef TCPX_NET_SOCKET_SEND_BULK_SEND_LANE_H_
#define TCPX_NET_SOCKET_SEND_BULK_SEND_LANE_H_

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net_socket/engine/progress_pool.h"
#include "net_socket/message/lane_counts.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/send/idle_lanes.h"
#include "net_socket/send/lane_rate.h"
#include "net_socket/send/send_again.h"
#include "net_socket/send/stripe.h"
#include "net_socket/send/zero_copy.h"

namespace tcpx {

class BusyLanes;
class HeldFrames;
class LaneRates;
class Sealer;

class BulkSendLane final : public PoolLane {
 public:
  struct Settings {
    int fd = -1;
    int lane = 1;
    bool paced_by_rate = true;         // PathProfile
    Switch zero_copy = Switch::kAuto;  // PathProfile
    int64_t chunk_bytes = 0;
    int64_t chunk_bytes_min = 0;
    bool heals = false;  // the lane may get other sockets
    bool seals = false;  // nothing is sent in the clear (TCPX_ENCRYPT)
  };

  // `busy` is the process's; `rates` and `idle` have one entry per bulk lane of the connection; this lane writes its own.
  BulkSendLane(LaneOwner* owner, const Settings& settings, Striper* striper, LaneRates* rates, IdleLanes* idle,
               BusyLanes* busy);
  ~BulkSendLane() override;

  // Before the lane is moved: its socket is sealed.
  void SealBy(std::unique_ptr<Sealer> sealer);

  void AdvanceInLoop(Engine* engine) override;
  void CompleteInLoop(const Completion& completion) override;
  void AbortInLoop(Engine* engine) override;

  // The peer has ended in order: what the kernel has taken is all that it needed, and more to send is an error. From any
  // thread; kick the lane then.
  // `taken`: how much of the lane's stream the peer had by then, where it says so.
  void PeerClosed(uint64_t taken = 0) {
    peer_took_ = taken;
    peer_closed_.store(true, std::memory_order_release);
  }

  // For the calling thread: sends until the lane holds enough unsent data or nothing is left.
  void Pump();
  // The same: the peer has closed, and had so much of the lane's stream by then.
  void PeerTook(uint64_t taken);
  // The same: the lane goes on with another socket. Not OK: it can't.
  absl::Status Replace(SocketOffer offer);
  // With `on` the lane takes no chunk any more, and says on its stream that it rests (FrameKind::kRest). From any
  // thread; kick the lane then. Of lanes that heal.
  void Retire(bool on) {
    drained_.store(false, std::memory_order_relaxed);
    retiring_.store(on, std::memory_order_release);
  }
  // It has said so, and the peer's kernel has all that it ever sent. From any thread.
  bool drained() const { return drained_.load(std::memory_order_acquire); }
  // It has taken an offer that parks, and no other since. From any thread.
  bool parked() const { return parked_.load(std::memory_order_acquire); }
  // From any thread.
  uint64_t bytes_sent() const { return counts_.bytes.get(); }
  const LaneCounts& counts() const { return counts_; }

 private:
  // While a lane drains with nothing to pull.
  static constexpr int64_t kLookEveryNs = 2'000'000;

  // True when the lane may take another chunk; else *retry_ns says when to ask again (0: when the socket is writable).
  bool HasRoom(int64_t* retry_ns);
  int64_t HeldMax() const;
  // The shortest chunk worth its header.
  int64_t ChunkMin() const;
  // Takes a look at how the lane drains; returns what it holds.
  int64_t Look(int64_t now);
  // With nothing to pull: looks on while the lane holds data, so that a slow flow is found out although the others wait
  // for it to drain. Returns when to look again, 0 for not at all.
  int64_t LookWhileHeld();
  bool PullChunk();
  int index() const { return settings_.lane - 1; }  // among the connection's bulk lanes
  void RefreshRate(int64_t now);
  int Gather(iovec* iov) const;
  // Hands the bytes in op_ to the engine, or what they become when they are sealed.
  void SubmitSend(Engine* engine, int count);
  // What a send of so many bytes took of the stream.
  size_t TookOf(int result);
  // Where the pinned chunk is sent from; false: it can't be sealed.
  bool SealPinned(PinnedChunk* pinned);
  void Advance(size_t bytes);
  // A call that was offered so much took so many bytes.
  void CountSent(size_t bytes, size_t offered);
  bool WaitForWork();
  // What the kernel has not taken is not sent any more.
  void EndInLoop(Engine* engine);
  // Waits for work, for room, or pulls: true when there is a chunk to send.
  bool NextChunkInLoop(Engine* engine);
  void SendInLoop(Engine* engine);
  bool SubmitPinned(Engine* engine);
  void CompletePinned(PinnedChunk* pinned, const Completion& completion);
  // A send ended with this errno.
  void Broke(int err);
  // False: nothing can be sealed, and the lane has failed.
  bool CanSeal();
  // True once nothing of the old socket is with the engine, and the lane goes on with the new one.
  bool ReplaceInLoop(Engine* engine);
  // What was sent into a socket that has died.
  void SubmitAgain(Engine* engine);
  bool PumpAgain();
  // Of a lane that retires: true exactly when there is a record to send.
  bool SaysRest();
  // There is something to send.
  bool loaded() const { return chunk_.request != nullptr || saying_; }

  LaneOwner* const owner_;
  const Settings settings_;
  Striper* const striper_;
  LaneRates* const rates_;
  IdleLanes* const idle_;
  BusyLanes* const busy_;
  uint32_t busy_span_ = 0;   // busy_'s
  int64_t unsent_max_ = -1;  // as of the latest look; -1: no bound
  LaneRate rate_;
  int64_t rtt_asked_ns_ = 0;
  int64_t peer_limited_us_ = 0;  // as of then
  int64_t looked_ns_ = 0;        // the latest look
  bool continuous_ = false;      // a chunk was being sent ever since the look before
  bool watching_ = false;        // the lane may hold data that no look has seen drain
  Chunk chunk_;                  // being sent; no request: none
  size_t taken_ = 0;             // of header and payload
  LaneCounts counts_;
  char header_[kHeaderBytes];

  ZeroCopyPolicy zero_copy_;
  PinnedChunks pinned_;
  PinnedChunk* rest_of_ = nullptr;  // chunk_ is the rest of this one
  IoOp* sending_ = nullptr;         // whose result is still to come: op_, or a pinned chunk's
  uint64_t peer_took_ = 0;          // written before peer_closed_
  std::atomic<bool> peer_closed_{false};

  std::unique_ptr<HeldFrames> held_;  // null: the lane does not heal
  std::unique_ptr<Sealer> sealer_;    // null: its socket is not sealed
  bool lost_ = false;                 // waits for another socket
  bool again_ = false;                // op_ sends what was sent before
  std::atomic<bool> retiring_{false};
  std::atomic<bool> drained_{false};
  std::atomic<bool> parked_{false};
  bool saying_ = false;  // header_ is that of a record, which is being sent
  bool said_ = false;    // nothing was sent behind such a record
  AckLooks ack_looks_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEND_BULK_SEND_LANE_H_
