// lane_model.h: what a receive comm should make of its lanes' streams, written down a second time and more simply.
//
// Purpose: the chunk stream's fuzz target gives the same bytes to ReceiveLane and to this model and compares. The model
//          keeps whole streams and whole messages, byte by byte; it knows nothing of staging, iovecs or atomics.
// Threads: one at a time.
// Units:   bytes.
// Errors:  a lane's verdict says what became of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tcpx {

enum class Verdict { kFine, kPeerFault, kTooLarge };

class LaneModel;

// The posted receives, all that ever were.
class ReceivesModel {
 public:
  struct Receive {
    std::string buffer;    // as long as its capacity, at first all kGuardByte
    uint64_t claimed = 0;  // bytes promised by headers; an empty message is promised one
    bool all_claimed = false;
    uint64_t landed = 0;  // of these, in the buffer
    bool sized = false;   // a chunk has said how long the message is
    uint64_t message_bytes = 0;
    bool done = false;
  };

  explicit ReceivesModel(size_t slots) : slots_(slots) {}

  void Post(size_t capacity);
  const std::vector<Receive>& all() const { return receives_; }
  Receive& at(uint64_t sequence) { return receives_[sequence]; }
  uint64_t completed() const { return completed_; }

 private:
  friend class LaneModel;

  const size_t slots_;
  std::vector<Receive> receives_;
  uint64_t completed_ = 0;
};

class LaneModel {
 public:
  explicit LaneModel(ReceivesModel* receives) : receives_(receives) {}

  // These bytes were read. Nothing may be read while the lane is parked.
  void Arrive(const char* data, size_t bytes);
  // Receives may have been posted.
  void Resume();
  void End();

  Verdict verdict() const { return verdict_; }
  bool parked() const { return parked_; }
  bool ended() const { return ended_; }
  bool between_frames() const { return verdict_ == Verdict::kFine && !in_frame_ && unread_.empty(); }

 private:
  struct Header {
    uint8_t kind;
    uint16_t padding;
    uint32_t length;
    uint64_t sequence, offset, message_bytes;
  };

  bool Step();
  bool StepHeader();
  bool Valid() const;
  // False exactly when the chunk's receive is still to come.
  bool Claim();
  Verdict Judge(ReceivesModel::Receive* receive);
  void Land(size_t bytes);

  ReceivesModel* const receives_;
  std::string unread_;
  Header header_{};
  bool in_frame_ = false;
  bool chunk_ = false;
  size_t payload_left_ = 0;
  size_t skip_left_ = 0;
  uint64_t last_sequence_ = 0;  // of the last chunk on this lane
  uint64_t last_end_ = 0;
  Verdict verdict_ = Verdict::kFine;
  bool parked_ = false;
  bool ended_ = false;
};

}  // namespace tcpx
