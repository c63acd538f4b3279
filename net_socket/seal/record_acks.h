// record_acks.h: how much of what was sealed the peer's kernel has acknowledged, in plaintext.
//
// Purpose: the kernel counts sealed bytes; the holder of what was sent counts plaintext. A record counts once it is
//          acknowledged whole.
// Threads: one at a time.
// Units:   bytes; positions count from the socket's first record. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcpx {

class RecordAcks {
 public:
  // The kernel took so many sealed bytes more.
  void Took(size_t sealed) { sealed_taken_ += sealed; }
  // A record of so much plaintext ended `sealed_after` sealed bytes before the last one that was taken.
  void Ended(size_t sealed_after, size_t plain);

  // How much plaintext is not acknowledged, where the kernel holds `queued` bytes that are not; negative: not known.
  // Whole records count.
  int64_t Unacked(int64_t queued);
  // The same, with what is acknowledged of a record that is not whole counted too: for a pace, and for nothing else.
  int64_t UnackedAbout(int64_t queued);

 private:
  struct End {
    uint64_t sealed = 0;
    uint64_t plain = 0;
  };
  static constexpr size_t kEndsMax = 256;

  void NoteEnd(const End& end);

  uint64_t sealed_taken_ = 0;
  uint64_t plain_taken_ = 0;
  uint64_t plain_acked_ = 0;   // of whole records
  uint64_t sealed_acked_ = 0;  // the same records
  uint64_t about_acked_ = 0;   // at the most that was said
  std::vector<End> ends_;      // a ring; where it is full, ends grow together. Empty until somebody asks
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace tcpx
