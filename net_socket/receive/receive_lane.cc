#include "net_socket/receive/receive_lane.h"

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "net_socket/message/failure_kind.h"
#include "net_socket/message/transfer_events.h"

namespace tcpx {

void ChunkPayload::Begin(const FrameHeader& chunk, PostedReceive* receive) {
  receive_ = receive;
  NoteTimes(receive, chunk, false);
  if (receive->events != nullptr) receive->events->Count(lane_, chunk.length, chunk.message_bytes);
  sink_ = chunk.length > 0 ? receive->way.sink : nullptr;
  at_ = sink_ == nullptr ? receive->data + chunk.offset : nullptr;
  rest_ = sink_ == nullptr ? chunk.length : 0;
  unplaced_ = chunk.length - rest_;
  through_stage_ = rest_ > 0 && receive->way.flag_lines;
}

bool ChunkPayload::TakePlace(const FrameHeader& chunk) {
  const uint64_t offset = chunk.offset + chunk.length - unplaced_;
  place_ = sink_->Take({nullptr, unplaced_, receive_, offset, chunk.message_bytes});
  if (place_ == nullptr) return false;
  at_ = place_->data;
  rest_ = place_->bytes;
  unplaced_ -= place_->bytes;
  return true;
}

bool ChunkPayload::Land(const FrameHeader& chunk) {
  through_stage_ = false;
  PostedReceive* const receive = std::exchange(receive_, nullptr);
  // With a sink the receive may be another message's by now.
  if (sink_ != nullptr) return chunk.length == chunk.message_bytes;
  NoteTimes(receive, chunk, true);
  return receive->Landed(chunk.length, chunk.message_bytes);
}

// The thread that asks moves lane 0, which has a clock of its own.
void ChunkPayload::NoteTimes(PostedReceive* receive, const FrameHeader& chunk, bool landed) const {
  const bool whole = chunk.length == chunk.message_bytes;
  if (receive->begun_ns == 0 || (whole && (lane_ == 0 || !landed))) return;
  if (landed) {
    receive->last_ns = MonotonicNanos();
  } else if (receive->first_ns == 0) {
    receive->first_ns = MonotonicNanos();
  }
}

int ReceiveLane::Prepare(iovec* iov) {
  if (parked_ || starved()) Digest();  // Its receive may have been posted since, or a place be free.
  if (parked_ || starved() || ended_ || !status_.ok()) return 0;
  stage_.Open(borrows_ == Borrows::kAlways || payload_.through_stage());
  int count = 0;
  if (payload_.rest() > 0 && !payload_.through_stage()) iov[count++] = {payload_.at(), payload_.rest()};
  if (count > 0 && !read_ahead_) return count;
  iov[count++] = {stage_.room(), StageRoom()};
  return count;
}

size_t ReceiveLane::StageRoom() const {
  constexpr size_t kLittleBytes = 4096;  // where the lane does not read ahead: a few small messages
  const size_t room = stage_.room_bytes();
  const size_t payload = payload_.through_stage() ? payload_.rest() : 0;
  // What follows the payload stays small enough to give the buffer back.
  if (payload_.through_stage() && borrows_ == Borrows::kForFlagLines) {
    return std::min(room, payload + LaneStage::kCarryBytes);
  }
  return read_ahead_ ? room : std::min(room, payload + kLittleBytes);
}

void ReceiveLane::Advance(size_t bytes) {
  counts_.bytes.Add(bytes);
  counts_.calls.Add();
  const size_t direct = payload_.through_stage() ? 0 : std::min(bytes, payload_.rest());
  payload_.Placed(direct);
  stage_.Came(bytes - direct);
  Digest();
  stage_.Settle();
}

void ReceiveLane::End() {
  ended_ = true;
  if (!status_.ok() || parked_) return;
  if (payload_.rest() > 0) {
    status_ = absl::UnavailableError(
        absl::StrFormat("the peer closed in the middle of message %d (%d of %d bytes of a chunk missing)",
                        header_.sequence, payload_.missing(), header_.length));
  } else if (skip_left_ > 0 || stage_.bytes() > 0) {
    status_ = absl::UnavailableError("the peer closed in the middle of a header");
  }
}

void ReceiveLane::Digest() {
  parked_ = false;
  bool more = true;
  while (more && status_.ok()) {
    more = payload_.open() ? DigestPayload() : skip_left_ > 0 ? DigestSkipped() : DigestHeader();
  }
  holds_ = stage_.bytes() >= kHeaderBytes;
}

bool ReceiveLane::DigestPayload() {
  stage_.Drop(payload_.Copy(stage_.data(), stage_.bytes()));
  if (payload_.rest() > 0) return false;
  payload_.LetGo();
  if (payload_.missing() > 0) return payload_.TakePlace(header_);
  counts_.chunks.Add();
  if (payload_.Land(header_)) ++messages_completed_;
  return true;
}

bool ReceiveLane::DigestSkipped() {
  const size_t skip = std::min(skip_left_, stage_.bytes());
  const bool error = header_.kind == FrameKind::kError;
  if (error) {
    const size_t body_rest = skip_left_ - std::min<size_t>(skip_left_, header_.padding);
    record_body_.append(stage_.data(), std::min(skip, body_rest));
  }
  stage_.Drop(skip);
  skip_left_ -= skip;
  if (skip_left_ > 0) return false;
  if (error) status_ = PeerError(CauseText(record_body_));
  return true;
}

bool ReceiveLane::DigestHeader() {
  if (stage_.bytes() < kHeaderBytes) return false;
  if (const char* wrong = DecodeHeader(stage_.data(), &header_)) {
    status_ = GarbageError(wrong);
    return false;
  }
  if (header_.kind == FrameKind::kChunk) {
    StartChunk();
  } else {
    stage_.Drop(kHeaderBytes);
    skip_left_ = size_t{header_.length} + header_.padding;
    record_body_.clear();
    if (skip_left_ == 0 && header_.kind == FrameKind::kError) status_ = PeerError("");
  }
  return !parked_;
}

void ReceiveLane::StartChunk() {
  PostedReceive* receive = nullptr;
  // A lane brings the chunks of a message in ascending order, so an overlap on one lane shows here. One between lanes
  // shows only in the sum: such a message may end with a hole, but never outside its buffer.
  const bool overlaps = header_.sequence == last_sequence_ && header_.offset < last_end_;
  switch (overlaps ? ClaimResult::kBroken : destination_->Claim(header_, &receive)) {
    case ClaimResult::kClaimed:
      last_sequence_ = header_.sequence;
      last_end_ = header_.offset + header_.length;
      largest_ = std::max(largest_, header_.message_bytes);
      stage_.Drop(kHeaderBytes);
      payload_.Begin(header_, receive);
      skip_left_ = header_.padding;
      return;
    case ClaimResult::kNotPosted:
      parked_ = true;
      return;
    case ClaimResult::kTooLarge:
      status_ = absl::InvalidArgumentError(
          absl::StrFormat("message %d of %d bytes is larger than the posted receive of %d "
                          "bytes: post receives of at least the size sent",
                          header_.sequence, header_.message_bytes, size_t{receive->capacity}));
      return;
    case ClaimResult::kBroken:
      status_ = absl::UnavailableError(
          absl::StrFormat("the peer broke the protocol: chunk [%d, +%d) of message %d does not fit", header_.offset,
                          header_.length, header_.sequence));
      return;
  }
}

}  // namespace tcpx
