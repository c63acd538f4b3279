// credits.h: which receives a sender may fill, where receives are grouped (maxRecvs above 1).
//
// Purpose: the members of a group are matched by tag, and the senders that share a connection advance independently of
//          each other: A, A, B may be sent against {A, B}, {A, B}. If the second A left before B, it would park in
//          front of B. So the receiver announces each group by a credit record, and a message leaves only when its tag
//          is open in the oldest announced group that still has an open member; it then carries that member's sequence.
//
//   a credit record:  header { kCredit, length = 4 x members, sequence = that of the first member }, a tag per member
// Threads: one at a time. Both pure: no system call, no allocation.
// Units:   bytes; a sequence counts members, not groups.
// Errors:  Announce returns a text (static storage) that says what is wrong with a record, or null: it is a peer's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net_socket/message/request.h"
#include "net_socket/message/wire.h"

namespace tcpx {

inline constexpr size_t kCreditBytesMax = kHeaderBytes + kReceivesMax * sizeof(int32_t);

// The receiver's: announcements that the kernel has not taken yet, and the latest that it has.
class CreditQueue {
 public:
  // `keeps`: of what the kernel has taken as much stays here as the peer may still be without.
  explicit CreditQueue(bool keeps = false) : kept_max_(keeps ? kWaitingMax : 0) {}

  bool HasRoom() const { return kWaitingMax - bytes() >= kCreditBytesMax; }
  void Push(uint64_t first_sequence, const int* tags, int count);
  bool empty() const { return begin_ == end_; }
  const char* data() const { return bytes_ + begin_; }
  size_t bytes() const { return end_ - begin_; }
  // The kernel took the first `bytes`; never more than there are.
  void Advance(size_t bytes);
  // Where it keeps: another socket goes on after the first `taken` bytes of all, modulo 2^32. False: the peer can't say
  // so.
  bool Rewind(uint32_t taken);

 private:
  static constexpr size_t kWaitingMax = kRequestsMax * kCreditBytesMax;

  const size_t kept_max_;
  uint64_t sent_ = 0;
  size_t begin_ = 0;  // what is in front of it the kernel has taken
  size_t end_ = 0;
  char bytes_[2 * kWaitingMax];
};

// The sender's: what was announced and is still open.
class CreditBook {
 public:
  // `max_receives` as in the peer's answer.
  explicit CreditBook(int max_receives) : max_receives_(static_cast<uint32_t>(max_receives)) {}

  // `body` holds header.length bytes.
  const char* Announce(const FrameHeader& header, const char* body);
  // True when `tag` is open in the oldest group with an open member: that member is taken, *sequence is its own.
  // Members with one tag are taken in order.
  bool Take(int32_t tag, uint64_t* sequence);

 private:
  struct Group {
    uint64_t first_sequence;
    uint32_t count;
    uint32_t open_count;
    int32_t tags[kReceivesMax];
    bool open[kReceivesMax];
  };

  const uint32_t max_receives_;
  uint64_t next_sequence_ = 0;
  // A receiver has at most kRequestsMax requests, and keeps a group's at least until all of its members were sent.
  Group groups_[kRequestsMax];
  uint64_t announced_ = 0;
  uint64_t filled_ = 0;
};

}  // namespace tcpx
