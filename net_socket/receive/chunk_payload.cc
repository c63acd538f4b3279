#include "net_socket/receive/chunk_payload.h"

#include "common/clock.h"
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

}  // namespace tcpx
