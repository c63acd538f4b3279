// cipher_suites.h: authenticated encryption of one record, and which ciphers this process has for it.
//
// Purpose: the seam between records and ciphers. A suite is a cipher with a key of at most 32 bytes, a nonce of 12 and
//          a tag of 16; the same suite gives the same bytes from every library. libgcrypt's are the fastest well-kept
//          ones that distributions have (docs/experiments.md). That library is loaded when it is first asked for, which
//          only encryption does: the plugin itself needs libc only. It is LGPL-2.1, and the system's own copy.
// Threads: an Aead is used by one thread at a time; the rest by any.
// Lifetime: what an Aead knows of its key is wiped when it goes. libgcrypt, once loaded, stays.
// Units:   bytes.
// Errors:  Seal: false, and nothing of the output may be used. Open: false where the record is not authentic; what the
//          output then holds means nothing. Make functions: null where the suite is not available (libgcrypt in FIPS
//          mode has no ChaCha20). For FIPS mode's GCM an Aead is made, which then refuses our nonces.
// Source:  OCB: RFC 7253; GCM: NIST SP 800-38D; ChaCha20-Poly1305: RFC 8439. libgcrypt's manual, 1.8 to 1.10: its
//          header is not needed; names, numbers and signatures are its ABI 20.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

// `key` has KeyBytes, here and below. The best that the suite has here.
std::unique_ptr<Aead> MakeAead(CipherSuite suite, const uint8_t* key);
std::unique_ptr<Aead> MakeGcryptAead(CipherSuite suite, const uint8_t* key);
// libsodium's ChaCha20-Poly1305, by far not the fastest, is linked in, so that no machine is without a cipher.
std::unique_ptr<Aead> MakeLinkedInAead(const uint8_t* key);

// "1.10.1"; null: there is no libgcrypt.
const char* GcryptVersion();
// It keeps to FIPS 140, and so refuses some of what it has.
bool GcryptIsFips();

// Those that this process has, by the trial of a known answer, the best first: never empty, since one is linked in. *by
// gets what they come from, for the log; *slow why the best is far from what this processor could do; empty: it is not.
std::vector<CipherSuite> FindSuites(std::string* by, std::string* slow = nullptr);
// The latter, of a processor and a libgcrypt (null: none).
std::string WhySlow(CipherSuite best, bool has_aes, const char* gcrypt_version);

}  // namespace tcpx
