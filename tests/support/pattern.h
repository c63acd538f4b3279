// pattern.h: bytes that tell where they belong, and guards around buffers.
//
// Purpose: each message of a seeded run has its own bytes, so that a shifted, repeated, swapped or missing part is
//          found, also where two messages are as long. What may not be written is filled with kGuardByte and checked
//          too.
// Threads: immutable once made. Lifetime: Bytes lives as long as the pattern.
// Units:   bytes.
// Errors:  the checks return an empty text, or one that says what is wrong and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/payload/guard.h"

namespace tcpx {

class Pattern {
 public:
  Pattern(uint64_t seed, size_t bytes_max);

  // The bytes of message `message`: bytes_max of them, of no alignment.
  const char* Bytes(uint64_t message) const;
  // Empty exactly when `data` holds the first `bytes` of `message`.
  std::string Check(uint64_t message, const char* data, size_t bytes) const;

 private:
  // Where messages may begin in bytes_: enough places that neighbours share none.
  static constexpr size_t kStarts = 64 * 1024;

  uint64_t seed_;
  std::vector<char> bytes_;
};

// A buffer for one message, with guards before and after it.
class GuardedBuffer {
 public:
  // `armed`: as by Arm(bytes_max). Otherwise pages that no message needs are never touched.
  explicit GuardedBuffer(size_t bytes_max, bool armed = true);

  char* data() { return bytes_.get() + kGuardBytes; }
  const char* data() const { return bytes_.get() + kGuardBytes; }
  size_t bytes_max() const { return bytes_max_; }
  // Guards everything up to `capacity` and beyond it.
  void Arm(size_t capacity);
  // Empty exactly when nothing but the first `bytes` of data was written since Arm(capacity).
  std::string Check(size_t bytes, size_t capacity) const;

 private:
  const size_t bytes_max_;
  const std::unique_ptr<char[]> bytes_;
};

}  // namespace tcpx
