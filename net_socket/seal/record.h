// record.h: the keys of one direction of one socket, the bytes of a record, and room for records.
//
//   a record:  length of the plaintext (4 bytes, little endian, 1 to kSealedBytesMax) | ciphertext | tag (16 bytes)
//
// The length is the associated data. The nonce is never sent: the direction's IV, whose last eight bytes are
// xored with the record's number (big endian). After kRecordsPerKey records the next traffic secret is derived from the
// one at hand, and records are counted from 0 again: 2^36 bytes at the most under one key.
// Threads: one at a time.
// Lifetime: secrets are wiped when this goes.
// Units:   bytes.
// Errors:  Next: null, for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/page_buffers.h"
#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/key_schedule.h"

namespace tcpx {

// The most plaintext in a record.
inline constexpr size_t kSealedBytesMax = 64 * 1024;
inline constexpr size_t kSealedHeaderBytes = 4;
// What a record adds to its plaintext.
inline constexpr size_t kSealBytes = kSealedHeaderBytes + kTagBytes;
inline constexpr uint64_t kRecordsPerKey = uint64_t{1} << 20;

// What a direction begins with.
struct TrafficKeys {
  CipherSuite suite = CipherSuite::kAes128Ocb;
  Key32 secret;
  uint64_t records_per_key = kRecordsPerKey;  // tests have fewer
};

class RecordKeys {
 public:
  explicit RecordKeys(const TrafficKeys& keys) : keys_(keys) {}
  ~RecordKeys();

  // The cipher of the next record, whose nonce *nonce gets. Each is given once.
  Aead* Next(AeadNonce* nonce);

 private:
  void Derive();

  TrafficKeys keys_;
  std::unique_ptr<Aead> aead_;  // null: not made yet, or not available
  AeadNonce iv_{};
  uint64_t number_ = 0;
};

// Eight records of the longest kind, and small ones in addition. Half of it made messages of 64 to 512 KiB 7 % slower,
// twice as much no faster (docs/experiments.md).
inline constexpr size_t kSealBufferBytes = (512 + 8) * 1024;

// Room for sealed bytes, borrowed while a socket has some.
struct SealBuffers : PageBuffers {
  SealBuffers() : PageBuffers(kSealBufferBytes) {}
};

// One that is given back by itself.
struct SealBufferReturn {
  std::shared_ptr<SealBuffers> lender;
  void operator()(char* buffer) const { lender->Give(PageBuffer(buffer)); }
};
using LentSealBuffer = std::unique_ptr<char[], SealBufferReturn>;

inline LentSealBuffer Lend(std::shared_ptr<SealBuffers> lender) {
  char* const buffer = lender->Take().release();
  return LentSealBuffer(buffer, {std::move(lender)});
}

}  // namespace tcpx
