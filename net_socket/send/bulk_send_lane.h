// bulk_send_lane.h: one lane that carries chunks of bulk messages away.
//
// Purpose: glue between the pure Striper and what moves bytes: a progress thread through its engine (the *InLoop
//          functions), or the calling thread with plain calls (Pump).
// Threads: a lane attached to the pool is its thread's; else the calling thread's, under the comm's mutex.
// Lifetime: owned by its connection, which detaches it before it goes. Borrows all that it is given. Units: bytes.
// Errors:  to LaneOwner::FailLane.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "net_socket/engine/progress_pool.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/send/bulk_pace.h"
#include "net_socket/send/send_stream.h"
#include "net_socket/send/stripe.h"
#include "net_socket/send/zero_copy.h"

namespace tcpx {

// The frame that the lane is sending: a header, and the chunk's payload after it, or a record. Borrows the chunk's
// request until the frame is over.
class OutgoingFrame {
 public:
  void Begin(const Chunk& chunk) {
    EncodeChunkHeader(*chunk.request, chunk.offset, chunk.length, 0, header_);
    Resume(chunk, 0);
  }
  // Goes on with a chunk whose header lies elsewhere, or here, after its first `taken` bytes.
  void Resume(const Chunk& chunk, size_t taken) {
    chunk_ = chunk;
    taken_ = taken;
    record_ = false;
  }
  // A record without a body.
  void BeginRecord(FrameKind kind) {
    EncodeHeader({kind}, header_);
    chunk_ = Chunk();
    taken_ = 0;
    record_ = true;
  }
  // Nothing is left to send.
  void Clear() {
    chunk_.request = nullptr;
    record_ = false;
  }

  bool loaded() const { return chunk_.request != nullptr || record_; }
  bool is_record() const { return record_; }
  const Chunk& chunk() const { return chunk_; }
  const char* payload() const { return chunk_.request->data + chunk_.offset; }
  const char* header() const { return header_; }
  bool begun() const { return taken_ > 0; }
  // Header and payload that the kernel has not taken.
  size_t left() const { return kHeaderBytes + chunk_.length - taken_; }
  void Took(size_t bytes) { taken_ += bytes; }

  // What is left of it, in at most two pieces: entries used.
  int Gather(iovec* iov) const {
    int count = 0;
    uint64_t skip = taken_, all = ~uint64_t{0};
    AppendPart(header_, kHeaderBytes, &skip, &all, iov, &count);
    if (!record_) AppendPart(payload(), chunk_.length, &skip, &all, iov, &count);
    return count;
  }

 private:
  Chunk chunk_;  // no request: none
  size_t taken_ = 0;
  bool record_ = false;
  char header_[kHeaderBytes];
};

class BulkSendLane final : public PoolLane {
 public:
  struct Settings {
    int fd = -1;
    int lane = 1;
    BulkPace::Settings pace;
    Switch zero_copy = Switch::kAuto;  // PathProfile
    bool heals = false;                // the lane may get other sockets
    bool seals = false;                // nothing is sent in the clear (TCPX_ENCRYPT)
  };

  // `busy` is the process's; `rates` and `idle` have one entry per bulk lane of the connection; this lane writes its
  // own.
  BulkSendLane(LaneOwner* owner, const Settings& settings, Striper* striper, LaneRates* rates, IdleLanes* idle,
               BusyLanes* busy);

  void AdvanceInLoop(Engine* engine) override;
  void CompleteInLoop(const Completion& completion) override;
  void AbortInLoop(Engine* engine) override;

  // The peer has ended in order: what the kernel has taken is all that it needed, and more to send is an error. From
  // any thread; kick the lane then. `taken`: how much of the lane's stream the peer had by then, where it says so.
  void PeerClosed(uint64_t taken = 0) {
    peer_took_ = taken;
    peer_closed_.store(true, std::memory_order_release);
  }

  // For the calling thread: sends until the lane holds enough unsent data or nothing is left.
  void Pump();
  // The same: the lane goes on with another socket. Not OK: it can't.
  absl::Status Replace(SocketOffer offer);
  // With `on` the lane takes no chunk any more, and says on its stream that it is closed (FrameKind::kClose). From any
  // thread; kick the lane then. For lanes that heal.
  void Retire(bool on) {
    drained_.store(false, std::memory_order_relaxed);
    retiring_.store(on, std::memory_order_release);
  }
  // It has said so, and the peer's kernel has all that it ever sent. From any thread.
  bool drained() const { return drained_.load(std::memory_order_acquire); }
  // By what moves the lane, but for its counts.
  SendStream& stream() { return stream_; }

 private:
  enum class Next { kLoaded, kNothing, kNoRoom, kRetires };

  int index() const { return stream_.lane() - 1; }  // among the connection's bulk lanes
  // Sees to it that there is a frame to send; else *retry_ns says when to ask again, 0: not by the clock.
  Next Load(int64_t* retry_ns);
  // The same, and waits for work or room where there is none: true when there is a frame.
  bool LoadInLoop(Engine* engine);
  // For a lane that retires: true exactly when there is a record to send.
  bool SaysClose();
  void SendInLoop(Engine* engine);
  // Hands the bytes in op_ to the engine, or what they become when they are sealed.
  void SubmitSend(Engine* engine, int count);
  bool SubmitPinned(Engine* engine);
  void CompletePinned(PinnedChunk* pinned, const Completion& completion);
  // How much of the stream a send with this result took.
  size_t TookOf(int result);
  void Advance(size_t bytes);
  // A call that was offered `offered` bytes of the frame took `bytes`.
  void CountSent(size_t bytes, size_t offered);
  // A send ended with this errno.
  void Broke(int err);
  // What the kernel has not taken is never sent.
  void EndInLoop(Engine* engine);
  // True once nothing of the old socket is with the engine, and the lane goes on with the new one.
  bool ReplaceInLoop(Engine* engine);

  LaneOwner* const owner_;
  Striper* const striper_;
  IdleLanes* const idle_;
  SendStream stream_;
  BulkPace pace_;
  OutgoingFrame frame_;

  ZeroCopyPolicy zero_copy_;
  PinnedChunks pinned_;
  PinnedChunk* rest_of_ = nullptr;  // the frame's chunk is the rest of this one
  IoOp* sending_ = nullptr;         // whose result is still to come: op_, or a pinned chunk's
  bool again_ = false;              // op_ sends what was sent before
  uint64_t peer_took_ = 0;          // written before peer_closed_
  std::atomic<bool> peer_closed_{false};
  std::atomic<bool> retiring_{false};
  std::atomic<bool> drained_{false};
  bool said_ = false;  // nothing was sent after a record that says that the lane is closed
};

}  // namespace tcpx
