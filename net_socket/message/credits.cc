#include "net_socket/message/credits.h"

#include <algorithm>
#include <cstring>

#include "common/dcheck.h"

namespace tcpx {

void CreditQueue::Push(uint64_t first_sequence, const int* tags, int count) {
  const uint32_t length = static_cast<uint32_t>(count) * sizeof(int32_t);
  if (end_ + kHeaderBytes + length > sizeof(bytes_)) {
    const size_t dropped = begin_ - std::min(begin_, kept_max_);
    std::memmove(bytes_, bytes_ + dropped, end_ - dropped);
    begin_ -= dropped;
    end_ -= dropped;
  }
  EncodeHeader({FrameKind::kCredit, 0, length, first_sequence}, bytes_ + end_);
  std::memcpy(bytes_ + end_ + kHeaderBytes, tags, length);
  end_ += kHeaderBytes + length;
}

void CreditQueue::Advance(size_t bytes) {
  bytes = std::min(bytes, end_ - begin_);
  begin_ += bytes;
  sent_ += bytes;
}

// A credit whose messages have come was taken: so the peer is never without more than may wait at once.
bool CreditQueue::Rewind(uint32_t taken) {
  const uint64_t back = static_cast<uint32_t>(sent_) - taken;
  if (back > sent_ || back + bytes() > kWaitingMax) return false;
  TCPX_DCHECK(back <= begin_);
  begin_ -= back;
  sent_ -= back;
  return true;
}

const char* CreditBook::Announce(const FrameHeader& header, const char* body) {
  const uint32_t count = header.length / sizeof(int32_t);
  if (count == 0 || count > max_receives_ || header.length % sizeof(int32_t) != 0) return "a credit of a wrong length";
  if (header.sequence != next_sequence_) return "a credit out of order";
  if (announced_ - filled_ == kRequestsMax) return "more credits than a receiver has requests";
  Group& group = groups_[announced_ % kRequestsMax];
  group.first_sequence = header.sequence;
  group.count = group.open_count = count;
  std::memcpy(group.tags, body, header.length);
  for (uint32_t i = 0; i < count; ++i) group.open[i] = true;
  next_sequence_ += count;
  ++announced_;
  return nullptr;
}

bool CreditBook::Take(int32_t tag, uint64_t* sequence) {
  if (filled_ == announced_) return false;
  Group& group = groups_[filled_ % kRequestsMax];
  for (uint32_t i = 0; i < group.count; ++i) {
    if (!group.open[i] || group.tags[i] != tag) continue;
    group.open[i] = false;
    *sequence = group.first_sequence + i;
    if (--group.open_count == 0) ++filled_;
    return true;
  }
  return false;
}

}  // namespace tcpx
