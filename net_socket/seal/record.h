// record.h: the keys of one direction of one socket, and the bytes of a record.
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

#include "net_socket/seal/aead.h"
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
  explicit RecordKeys(const TrafficKeys& keys);
  ~RecordKeys();
  RecordKeys(const RecordKeys&) = delete;
  RecordKeys& operator=(const RecordKeys&) = delete;

  // The cipher of the next record, whose nonce *nonce gets. Each is given once.
  Aead* Next(AeadNonce* nonce);

 private:
  void Derive();

  TrafficKeys keys_;
  std::unique_ptr<Aead> aead_;  // null: not made yet, or not available
  AeadNonce iv_{};
  uint64_t number_ = 0;
};

}  // namespace tcpx
