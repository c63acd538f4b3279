#include "net_socket/seal/record_acks.h"

#include <algorithm>

namespace tcpx {

void RecordAcks::Ended(size_t sealed_after, size_t plain) {
  plain_taken_ += plain;
  NoteEnd({sealed_taken_ - sealed_after, plain_taken_});
}

void RecordAcks::NoteEnd(const End& end) {
  if (ends_.empty()) return;
  if (count_ < kEndsMax) ++count_;
  ends_[(first_ + count_ - 1) % kEndsMax] = end;
}

int64_t RecordAcks::Unacked(int64_t queued) {
  if (queued < 0) return queued;
  if (ends_.empty()) {
    ends_.resize(kEndsMax);
    NoteEnd({sealed_taken_, plain_taken_});  // All that was sent before counts as one.
  }
  const uint64_t held = std::min(static_cast<uint64_t>(queued), sealed_taken_);
  while (count_ > 0 && ends_[first_].sealed <= sealed_taken_ - held) {
    plain_acked_ = ends_[first_].plain;
    sealed_acked_ = ends_[first_].sealed;
    first_ = (first_ + 1) % kEndsMax;
    --count_;
  }
  return static_cast<int64_t>(plain_taken_ - plain_acked_);
}

int64_t RecordAcks::UnackedAbout(int64_t queued) {
  if (Unacked(queued) < 0) return queued;
  uint64_t acked = plain_acked_;
  const uint64_t sealed = sealed_taken_ - std::min(static_cast<uint64_t>(queued), sealed_taken_);
  if (count_ > 0 && sealed > sealed_acked_) {
    acked += std::min(ends_[first_].plain - plain_acked_, sealed - sealed_acked_);
  }
  about_acked_ = std::max(about_acked_, acked);
  return static_cast<int64_t>(plain_taken_ - about_acked_);
}

}  // namespace tcpx
