// sealer.h: the sending half of an encrypted socket: seals plaintext into records, and counts what the kernel took.
//
// Purpose: sits between the code that gathers data and the socket. It accepts plaintext as sendmsg(2) does, and returns
//          how much the kernel has taken, in whole records. Sealed bytes that the kernel has not taken are pending, and
//          are sent first. The caller offers the same plaintext again until it is taken, so the sealer never needs
//          another caller to send what is pending.
// Use:     Send(fd, ...). If an engine sends instead: if (!pending()) Seal(...); send rest(); Took(n).
// Threads: one at a time. Lifetime: borrows nothing. The destructor wipes the keys; a sealer is destroyed with its
//          socket.
// Units:   bytes. Positions count from the socket's first record.
// Errors:  Send: as sendmsg(2); EPROTO if sealing fails, and from then on; EAGAIN after Stop.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "net_socket/seal/record.h"

namespace tcpx {

// Where a record ends, in sealed bytes and in plaintext; and of how many that is kept.
struct RecordEnd {
  uint64_t sealed = 0;
  uint64_t plain = 0;
};
inline constexpr size_t kRecordEndsMax = 256;

// How much of what was sealed the peer's kernel has acknowledged, in plaintext.
// Purpose: the kernel counts sealed bytes; the holder of what was sent counts plaintext. A record counts once it is
//          acknowledged whole.
class RecordAcks {
 public:
  // The kernel took another `sealed` bytes.
  void Took(size_t sealed) { sealed_taken_ += sealed; }
  // A record of `plain` bytes ended `sealed_after` sealed bytes before the last one that was taken.
  void Ended(size_t sealed_after, size_t plain);

  // How much plaintext is not acknowledged, where the kernel holds `queued` bytes that are not; negative: not known.
  // Whole records count.
  int64_t Unacked(int64_t queued);
  // The same, with what is acknowledged of a record that is not whole counted too: for a pace, and for nothing else.
  int64_t UnackedAbout(int64_t queued);

 private:
  void NoteEnd(const RecordEnd& end);

  uint64_t sealed_taken_ = 0;
  uint64_t plain_taken_ = 0;
  uint64_t plain_acked_ = 0;     // of whole records
  uint64_t sealed_acked_ = 0;    // the same records
  uint64_t about_acked_ = 0;     // at the most that was said
  std::vector<RecordEnd> ends_;  // a ring; where it is full, ends grow together. Empty until somebody asks
  size_t first_ = 0;
  size_t count_ = 0;
};

// The error of a connection whose sealer is broken.
inline constexpr char kCantSeal[] = "the cipher failed, and nothing may be sent without it";

class Sealer {
 public:
  Sealer(const TrafficKeys& keys, std::shared_ptr<SealBuffers> buffers) : keys_(keys), buffers_(std::move(buffers)) {}

  // The room that the records of `bytes` of plaintext need at most, if it is one short piece and one other.
  static constexpr size_t RoomFor(size_t bytes) { return bytes + kSealBytes * (bytes / kSealedBytesMax + 3); }

  // Sends as much of the pieces as the socket takes without waiting. Returns how many plaintext bytes are in records
  // that were sent whole; never more than the pieces hold.
  ssize_t Send(int fd, const iovec* pieces, int count);
  // From now on Send takes nothing (EAGAIN), because its caller would no longer offer the pending bytes first.
  void Stop() { stopped_ = true; }

  // Skips `skip` bytes of the pieces, and seals as much of the rest as a buffer holds. Nothing may be pending. False:
  // sealing failed.
  bool Seal(const iovec* pieces, int count, size_t skip = 0);
  // The same into `room`, which must stay valid until the kernel has taken all of it.
  bool SealInto(char* room, size_t bytes, const iovec* pieces, int count, size_t skip = 0);
  // Lends a buffer for SealInto; RoomFor says how much room plaintext needs.
  LentSealBuffer LendRoom() { return Lend(buffers_); }
  // Sealing has failed, and this sealer seals nothing more.
  bool broken() const { return broken_; }
  bool pending() const { return begin_ < end_; }
  // The bytes to send next.
  iovec rest() const { return {place_ + begin_, end_ - begin_}; }
  // The kernel took `bytes` of rest(). Returns how much plaintext is in the records that this completed.
  size_t Took(size_t bytes);
  // As in RecordAcks: how much plaintext is unacknowledged if the kernel holds `queued` unacknowledged bytes.
  int64_t Unacked(int64_t queued) { return acks_.Unacked(queued); }
  int64_t UnackedAbout(int64_t queued) { return acks_.UnackedAbout(queued); }

 private:
  // Seals `bytes` of the pieces, from `skip` on, as the next record.
  bool SealRecord(const iovec* pieces, int count, size_t skip, size_t bytes);

  RecordKeys keys_;
  const std::shared_ptr<SealBuffers> buffers_;
  PageBuffer buffer_;      // null: none is borrowed
  char* place_ = nullptr;  // where the pending bytes are: in buffer_, or in the caller's room
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<RecordEnd> ends_;  // of the records in place_: counted in place_, and in plaintext
  size_t first_end_ = 0;
  size_t returned_ = 0;  // how much of that plaintext Took has returned
  bool broken_ = false;
  bool stopped_ = false;
  RecordAcks acks_;
};

// As sendmsg(2), through `sealer`. If that is null, sends plaintext, or fails with EPROTO if data `must` be encrypted
// (TCPX_ENCRYPT is on).
ssize_t SendBy(Sealer* sealer, bool must, int fd, iovec* pieces, int count);

}  // namespace tcpx
