// aead.h: authenticated encryption of one record, by any library that has it.
//
// Purpose: the seam between records and ciphers (cipher_suites.h makes them). A suite is a cipher with a key of at most
//          32 bytes, a nonce of 12 and a tag of 16; the same suite gives the same bytes from every library.
// Threads: an Aead is used by one thread at a time; the rest is constant.
// Lifetime: what an Aead knows of its key is wiped when it goes.
// Units:   bytes.
// Errors:  Seal: false, and nothing of the output may be used. Open: false where the record is not authentic; what the
//          output then holds means nothing.
// Source:  OCB: RFC 7253; GCM: NIST SP 800-38D; ChaCha20-Poly1305: RFC 8439.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tcpx {

inline constexpr size_t kTagBytes = 16;
inline constexpr size_t kAeadNonceBytes = 12;
using AeadNonce = std::array<uint8_t, kAeadNonceBytes>;

// The best first. Values are those of the hello (wire.h), and never change.
enum class CipherSuite : uint8_t { kAes128Ocb = 0, kAes128Gcm = 1, kChaCha20Poly1305 = 2 };
inline constexpr int kCipherSuites = 3;

// By suite. Names are as TCPX_ENCRYPT_CIPHER has them.
inline constexpr size_t kKeyBytes[kCipherSuites] = {16, 16, 32};
inline constexpr const char* kSuiteNames[kCipherSuites] = {"aes128-ocb", "aes128-gcm", "chacha20-poly1305"};
constexpr size_t KeyBytes(CipherSuite suite) { return kKeyBytes[static_cast<int>(suite)]; }
constexpr const char* SuiteName(CipherSuite suite) { return kSuiteNames[static_cast<int>(suite)]; }

class Aead {
 public:
  virtual ~Aead() = default;

  // `out` gets `bytes` of ciphertext and the tag. `in` may be `out`, and must not overlap it otherwise.
  virtual bool Seal(const AeadNonce& nonce, const char* ad, size_t ad_bytes, const char* in, size_t bytes,
                    char* out) = 0;
  // `in` has `bytes` of ciphertext and the tag after them. `out` may be `in`.
  virtual bool Open(const AeadNonce& nonce, const char* ad, size_t ad_bytes, const char* in, size_t bytes,
                    char* out) = 0;
};

}  // namespace tcpx
