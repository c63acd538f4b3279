#include "net_socket/send/held_frames.h"

#include <cstring>

#include "absl/numeric/bits.h"
#include "common/dcheck.h"

namespace tcpx {

HeldFrames::HeldFrames(size_t frames, size_t copy_bytes)
    : mask_(frames - 1), copy_bytes_(copy_bytes), frames_(new Frame[frames]), copies_(new char[copy_bytes]) {
  TCPX_DCHECK(absl::has_single_bit(frames));
}

void HeldFrames::Begin(const char* header, const Payload& payload, SendRequest* request) {
  TCPX_DCHECK(room() > 0 && !resending() && sent_ == begun_);
  Frame& frame = at(next_++);
  std::memcpy(frame.header, header, kHeaderBytes);
  frame.payload = payload;
  frame.request = request;
  frame.copy_end = 0;
  frame.pinned = false;
  begun_ += kHeaderBytes + payload.bytes + payload.padding;
  frame.end = begun_;
  if (request != nullptr) ++awaited_;
}

void HeldFrames::Finish(bool copy) {
  TCPX_DCHECK(sent_ == begun_);
  Frame& frame = at(next_ - 1);
  if (copy && Copy(&frame)) Report(&frame);
}

// A copy lies in one piece: what is left at the end of the room is left out.
bool HeldFrames::Copy(Frame* frame) {
  const size_t bytes = frame->payload.bytes;
  if (bytes == 0) return true;
  if (bytes > copy_bytes_) return false;
  uint64_t begin = copy_end_;
  const uint64_t rest = copy_bytes_ - begin % copy_bytes_;
  if (rest < bytes) begin += rest;
  if (begin + bytes - copy_begin_ > copy_bytes_) return false;
  char* const place = copies_.get() + begin % copy_bytes_;
  std::memcpy(place, frame->payload.data, bytes);
  frame->payload.data = place;
  frame->copy_end = copy_end_ = begin + bytes;
  return true;
}

uint64_t HeldFrames::Pin() {
  at(next_ - 1).pinned = true;
  return next_ - 1;
}

void HeldFrames::Unpin(uint64_t frame) {
  at(frame).pinned = false;
  Release();
}

void HeldFrames::Acked(int64_t queued) {
  if (queued < 0 || static_cast<uint64_t>(queued) > cursor_ - acked_) return;
  acked_ = cursor_ - static_cast<uint64_t>(queued);
  Release();
}

void HeldFrames::Report(Frame* frame) {
  SendRequest* const request = frame->request;
  frame->request = nullptr;
  --awaited_;
  const uint64_t units = Units(frame->payload.bytes);
  // The request may be gone after this. Where nothing else of it is left nobody else counts: no locked instruction.
  if (request->left.load(std::memory_order_acquire) == units) {
    request->left.store(0, std::memory_order_release);
  } else {
    request->left.fetch_sub(units, std::memory_order_acq_rel);
  }
}

void HeldFrames::Release() {
  while (first_ != next_ && at(first_).end <= acked_ && !at(first_).pinned) {
    Frame& frame = at(first_++);
    if (frame.copy_end != 0) copy_begin_ = frame.copy_end;
    if (frame.request != nullptr) Report(&frame);
  }
  // From the beginning again: the memory that was used last is in the caches.
  if (first_ == next_ || copy_begin_ == copy_end_) copy_begin_ = copy_end_ = 0;
}

bool HeldFrames::PeerTook(uint64_t taken) {
  if (taken <= acked_ || taken > sent_) return false;
  const bool ahead = taken > cursor_;
  acked_ = taken;
  cursor_ = std::max(cursor_, taken);
  Release();
  return ahead;
}

bool HeldFrames::Rewind(uint64_t taken) {
  if (taken < acked_ || taken > sent_) return false;
  cursor_ = acked_ = taken;
  Release();
  return true;
}

int HeldFrames::GatherAgain(iovec* iov, int max) const {
  int count = 0;
  uint64_t left = sent_ - cursor_;
  for (uint64_t i = first_; i != next_ && left > 0 && count + 3 <= max; ++i) {
    const Frame& frame = at(i);
    if (frame.end <= cursor_) continue;
    uint64_t skip = cursor_ > frame.begin() ? cursor_ - frame.begin() : 0;
    AppendPart(frame.header, kHeaderBytes, &skip, &left, iov, &count);
    AppendPart(frame.payload.data, frame.payload.bytes, &skip, &left, iov, &count);
    AppendPart(kPadding, frame.payload.padding, &skip, &left, iov, &count);
  }
  return count;
}

}  // namespace tcpx
