#include "net_socket/receive/receive_lane.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "net_socket/message/failure_kind.h"
#include "net_socket/message/transfer_events.h"
#include "net_socket/receive/forward_copy.h"

namespace tcpx {

ReceiveLane::~ReceiveLane() {
  if (borrowed_ != nullptr) stages_->Give(std::move(borrowed_));
}

int ReceiveLane::Prepare(iovec* iov) {
  if (parked_ || stalled_) Digest();  // Its receive may have been posted since, or a place be free.
  if (parked_ || stalled_ || ended_ || !status_.ok()) return 0;
  OpenStage();
  int count = 0;
  if (payload_rest_ > 0 && !through_stage_) iov[count++] = {payload_at_, payload_rest_};
  if (count > 0 && !read_ahead_) return count;
  iov[count++] = {stage_ + stage_end_, StageRoom()};
  return count;
}

size_t ReceiveLane::StageRoom() const {
  const size_t room = stage_capacity_ - stage_end_;
  const size_t payload = through_stage_ ? payload_rest_ : 0;
  // What follows the payload stays small enough to give the buffer back.
  if (through_stage_ && borrows_ == Borrows::kForFlagLines) return std::min(room, payload + kCarryBytes);
  return read_ahead_ ? room : std::min(room, payload + kLittleBytes);
}

void ReceiveLane::Advance(size_t bytes) {
  counts_.bytes.Add(bytes);
  counts_.calls.Add();
  const size_t direct = through_stage_ ? 0 : std::min(bytes, payload_rest_);
  payload_at_ += direct;
  payload_rest_ -= direct;
  stage_end_ += bytes - direct;
  Digest();
  SettleStage();
}

void ReceiveLane::End() {
  ended_ = true;
  if (!status_.ok() || parked_) return;
  if (payload_rest_ > 0) {
    Fail(absl::UnavailableError(
        absl::StrFormat("the peer closed in the middle of message %d (%d of %d bytes of a chunk missing)",
                        header_.sequence, payload_rest_ + unplaced_, header_.length)));
  } else if (skip_rest_ > 0 || staged() > 0) {
    Fail(absl::UnavailableError("the peer closed in the middle of a header"));
  }
}

void ReceiveLane::Digest() {
  DigestStaged();
  holds_ = staged() >= kHeaderBytes;
}

void ReceiveLane::DigestStaged() {
  parked_ = false;
  stalled_ = false;
  while (status_.ok()) {
    if (receive_ != nullptr) {
      if (!DigestPayload()) return;
    } else if (skip_rest_ > 0) {
      if (!DigestSkipped()) return;
    } else if (!DigestHeader()) {
      return;
    }
  }
}

bool ReceiveLane::DigestPayload() {
  const size_t copy = std::min(payload_rest_, staged());
  if (copy > 0) {
    ForwardCopy(payload_at_, stage_ + stage_begin_, copy);
    payload_at_ += copy;
    payload_rest_ -= copy;
    stage_begin_ += copy;
  }
  if (payload_rest_ > 0) return false;
  if (sink_ != nullptr) return NextPlace();
  ChunkLanded();
  return true;
}

bool ReceiveLane::NextPlace() {
  if (place_ != nullptr) sink_->Filled(std::exchange(place_, nullptr));
  if (unplaced_ == 0) {
    ChunkLanded();
    return true;
  }
  PayloadPlace wanted;
  wanted.bytes = unplaced_;
  wanted.receive = receive_;
  wanted.offset = header_.offset + header_.length - unplaced_;
  wanted.message_bytes = header_.message_bytes;
  place_ = sink_->Take(wanted);
  stalled_ = place_ == nullptr;
  if (stalled_) return false;
  payload_at_ = place_->data;
  payload_rest_ = place_->bytes;
  unplaced_ -= place_->bytes;
  return true;
}

bool ReceiveLane::DigestSkipped() {
  const size_t skip = std::min(skip_rest_, staged());
  if (record_kind_ == FrameKind::kError) {
    const size_t body_rest = skip_rest_ - std::min<size_t>(skip_rest_, header_.padding);
    record_body_.append(stage_ + stage_begin_, std::min(skip, body_rest));
  }
  stage_begin_ += skip;
  skip_rest_ -= skip;
  if (skip_rest_ > 0) return false;
  if (record_kind_ == FrameKind::kError) {
    Fail(PeerError(CauseText(record_body_)));
  }
  record_kind_ = FrameKind::kChunk;
  return true;
}

bool ReceiveLane::DigestHeader() {
  if (staged() < kHeaderBytes) return false;
  if (const char* wrong = DecodeHeader(stage_ + stage_begin_, &header_)) {
    Fail(GarbageError(wrong));
    return false;
  }
  if (header_.kind == FrameKind::kChunk) {
    StartChunk();
  } else {
    StartRecord();
  }
  return !parked_;
}

// A lane brings the chunks of a message in ascending order, so an overlap on one lane shows here. One between lanes
// shows only in the sum: such a message may end with a hole, but never outside its buffer.
ClaimResult ReceiveLane::Claim() {
  if (header_.sequence == last_sequence_ && header_.offset < last_end_) return ClaimResult::kBroken;
  return table_->Claim(header_, &receive_);
}

void ReceiveLane::StartChunk() {
  switch (Claim()) {
    case ClaimResult::kClaimed:
      NoteTimes(false);
      if (receive_->events != nullptr) receive_->events->Count(lane_, header_.length, header_.message_bytes);
      last_sequence_ = header_.sequence;
      largest_ = std::max(largest_, header_.message_bytes);
      last_end_ = header_.offset + header_.length;
      stage_begin_ += kHeaderBytes;
      sink_ = header_.length > 0 ? receive_->way.sink : nullptr;
      payload_at_ = sink_ == nullptr ? receive_->data + header_.offset : nullptr;
      payload_rest_ = sink_ == nullptr ? header_.length : 0;
      unplaced_ = header_.length - payload_rest_;
      through_stage_ = payload_rest_ > 0 && receive_->way.flag_lines;
      skip_rest_ = header_.padding;
      return;
    case ClaimResult::kNotPosted:
      parked_ = true;
      return;
    case ClaimResult::kTooLarge:
      Fail(absl::InvalidArgumentError(
          absl::StrFormat("message %d of %d bytes is larger than the posted receive of %d "
                          "bytes: post receives of at least the size sent",
                          header_.sequence, header_.message_bytes, size_t{receive_->capacity})));
      receive_ = nullptr;
      return;
    case ClaimResult::kBroken:
      Fail(absl::UnavailableError(
          absl::StrFormat("the peer broke the protocol: chunk [%d, +%d) of message %d does not fit", header_.offset,
                          header_.length, header_.sequence)));
      receive_ = nullptr;
      return;
  }
}

void ReceiveLane::StartRecord() {
  stage_begin_ += kHeaderBytes;
  record_kind_ = header_.kind;
  skip_rest_ = size_t{header_.length} + header_.padding;
  record_body_.clear();
  if (skip_rest_ == 0 && record_kind_ == FrameKind::kError) Fail(PeerError(""));
}

// Lane 0 is moved by who asks, and has a clock of its own.
void ReceiveLane::NoteTimes(bool landed) {
  const bool whole = header_.length == header_.message_bytes;
  if (receive_->begun_ns == 0 || (whole && (lane_ == 0 || !landed))) return;
  if (landed) {
    receive_->last_ns = MonotonicNanos();
  } else if (receive_->first_ns == 0) {
    receive_->first_ns = MonotonicNanos();
  }
}

void ReceiveLane::ChunkLanded() {
  payload_bytes_ += header_.length;
  counts_.chunks.Add();
  through_stage_ = false;
  // With a sink the receive may be another's by now.
  if (sink_ != nullptr) {
    if (header_.length == header_.message_bytes) ++messages_completed_;
  } else {
    NoteTimes(true);
    if (PostedReceiveTable::Landed(receive_, header_)) ++messages_completed_;
  }
  receive_ = nullptr;
}

void ReceiveLane::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void ReceiveLane::OpenStage() {
  const bool borrow = borrows_ == Borrows::kAlways || through_stage_;
  if (borrow && stages_ != nullptr && borrowed_ == nullptr) {
    borrowed_ = stages_->Take();
    if (staged() > 0) std::memcpy(borrowed_.get(), stage_ + stage_begin_, staged());
    stage_end_ -= stage_begin_;
    stage_begin_ = 0;
    stage_ = borrowed_.get();
    stage_capacity_ = kStageBytes;
  } else if (stage_begin_ > 0) {
    std::memmove(stage_, stage_ + stage_begin_, staged());
    stage_end_ -= stage_begin_;
    stage_begin_ = 0;
  }
}

// Gives a borrowed buffer back as soon as what is left fits beside the lane.
void ReceiveLane::SettleStage() {
  if (borrowed_ == nullptr || staged() > kCarryBytes) return;
  const size_t left = staged();
  if (left > 0) std::memcpy(carry_, stage_ + stage_begin_, left);
  stage_ = carry_;
  stage_capacity_ = kCarryBytes;
  stage_begin_ = 0;
  stage_end_ = left;
  stages_->Give(std::move(borrowed_));
}

}  // namespace tcpx
