// receive_lane.h: one direction of one socket, as a receive comm sees it: bytes in, messages landed.
//
// Purpose: says where the next bytes of the lane go and digests what has arrived. Knows no socket: the one that moves
//          the bytes (the calling thread, an engine, a test) asks Prepare, reads, and tells Advance.
//
//   iovec iov[2];
//   while (int n = lane.Prepare(iov)) { ssize_t got = readv(fd, iov, n); ... lane.Advance(got); }
//
// Payload goes straight to its place in the posted receive; what follows it is read ahead into staging by the same
// call. Data of LL and LL128 (PayloadRoute::flag_lines) is staged whole and copied in ascending order: the kernel
// promises no order inside a copy, and the GPU reads along (forward_copy.h). A header whose message has no posted
// receive parks the lane: Prepare gives nothing until it is posted. Payload for a receive with a sink (GPU memory) goes
// through the sink's places; where none is free the lane waits likewise: it is starved.
// Threads: one at a time. Lifetime: borrows the table and the pool, which outlive it. Units: bytes.
// Errors:  the first one sticks in status(): kInvalidArgument when a message is larger than its receive, kUnavailable
//          when the peer breaks the format or ends in the middle of a message.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "net_socket/message/counts.h"
#include "net_socket/message/flight.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/message/wire.h"
#include "net_socket/receive/forward_copy.h"
#include "net_socket/receive/lane_stage.h"

namespace tcpx {

// The payload of the chunk that the lane is reading: knows where its next bytes go, which is to their place in the
// message, or, one after the other, to the places that the message's sink lends (GPU memory). Borrows the receive until
// Land.
class ChunkPayload {
 public:
  // `lane` is the lane's number in its connection.
  explicit ChunkPayload(int lane) : lane_(lane) {}

  // `chunk` was claimed, and comes next.
  void Begin(const FrameHeader& chunk, PostedReceive* receive);
  // True exactly between Begin and Land.
  bool open() const { return receive_ != nullptr; }

  // Where its next bytes go, as far as there is a place.
  char* at() const { return at_; }
  size_t rest() const { return rest_; }
  // Still to come, with those that have no place yet.
  size_t missing() const { return rest_ + unplaced_; }
  // True exactly when it must not be read straight to its place.
  bool through_stage() const { return through_stage_; }
  // True exactly when the next bytes have no place yet.
  bool starved() const { return rest_ == 0 && unplaced_ > 0; }

  // Another `bytes` of it are in their place.
  void Placed(size_t bytes) {
    at_ += bytes;
    rest_ -= bytes;
  }
  // Copies what has a place from `bytes` at `from`. Returns how much that was.
  size_t Copy(const char* from, size_t bytes) {
    const size_t part = std::min(rest_, bytes);
    if (part > 0) ForwardCopy(at_, from, part);
    Placed(part);
    return part;
  }
  // Its place is full: the sink may have it.
  void LetGo() {
    if (place_ != nullptr) sink_->Filled(std::exchange(place_, nullptr));
  }
  // A place for what has none. False: none is free.
  bool TakePlace(const FrameHeader& chunk);
  // All of it is in place. True when that completed the message.
  bool Land(const FrameHeader& chunk);

 private:
  void NoteTimes(PostedReceive* receive, const FrameHeader& chunk, bool landed) const;

  const int lane_;
  PostedReceive* receive_ = nullptr;
  char* at_ = nullptr;
  size_t rest_ = 0;
  bool through_stage_ = false;
  PayloadSink* sink_ = nullptr;    // the receive's; null too where the chunk is empty
  PayloadPlace* place_ = nullptr;  // being filled
  size_t unplaced_ = 0;
};

class ReceiveLane {
 public:
  static constexpr int kIovMax = 2;

  // When a lane borrows staging: for every read, or (lanes that always have a read pending) only while data comes that
  // must not go straight to its place. It then reads at most a header ahead.
  enum class Borrows { kAlways, kForFlagLines };

  // `stages` null: the lane never borrows, and stages little. `lane` is its number in the connection.
  ReceiveLane(Destination* destination, StagePool* stages, int lane = 0, Borrows borrows = Borrows::kAlways)
      : destination_(destination), borrows_(borrows), payload_(lane), stage_(stages) {}

  // Where the next bytes go: up to kIovMax entries, 0 exactly when the lane is parked, starved, ended or failed.
  int Prepare(iovec* iov);
  // False: reads a payload to its place alone, and little beyond a header: no copies, but more reads. True at first.
  void ReadAhead(bool on) { read_ahead_ = on; }
  // `bytes` > 0 arrived into the places of the last Prepare.
  void Advance(size_t bytes);
  // Nothing was there to read: an idle lane owns no staging.
  void NothingCame() { stage_.Settle(); }
  // The peer ended the stream. In the middle of a frame that is an error.
  void End();

  // True exactly when the next message on this lane has no posted receive yet.
  bool parked() const { return parked_; }
  uint64_t parked_sequence() const { return header_.sequence; }
  // True exactly when the next payload has no place yet.
  bool starved() const { return payload_.starved(); }
  // True once the peer has ended the stream between two frames. From any thread.
  bool ended() const { return ended_; }
  // True exactly when every byte that came belongs to a frame that is complete.
  bool between_frames() const { return !payload_.open() && skip_left_ == 0 && stage_.bytes() == 0; }
  // Bytes of the current frame that are still to come.
  size_t rest_bytes() const { return payload_.missing() + skip_left_; }
  // True exactly when the latest frame says that the sender closes the lane.
  bool closes() const { return header_.kind == FrameKind::kClose && between_frames(); }
  // A frame's header at least was read ahead, and waits. From any thread.
  bool holds() const { return holds_; }
  const absl::Status& status() const { return status_; }
  // The message being received: for errors and statistics.
  const FrameHeader& current() const { return header_; }
  // Bytes of the largest message that brought something since the last call.
  uint64_t TakeLargest() { return std::max(std::exchange(largest_, 0), header_.message_bytes); }
  uint64_t messages_completed() const { return messages_completed_; }
  // From any thread.
  const LaneCounts& counts() const { return counts_; }

 private:
  // How much to read into staging.
  size_t StageRoom() const;
  void Digest();
  // False: it needs more than has come, or a receive, or a place.
  bool DigestPayload();
  bool DigestSkipped();
  bool DigestHeader();
  void StartChunk();

  Destination* const destination_;
  const Borrows borrows_;
  ChunkPayload payload_;
  size_t skip_left_ = 0;  // padding, or the body of a record
  FrameHeader header_;
  uint64_t last_sequence_ = 0;  // of the last chunk that was claimed
  uint64_t last_end_ = 0;       // where it ends in its message

  bool read_ahead_ = true;
  bool parked_ = false;
  Relaxed<bool> ended_ = false;
  Relaxed<bool> holds_ = false;
  std::string record_body_;  // of an error record only
  absl::Status status_;
  uint64_t messages_completed_ = 0;
  uint64_t largest_ = 0;  // of the messages whose chunks began recently
  LaneCounts counts_;
  LaneStage stage_;
};

}  // namespace tcpx
