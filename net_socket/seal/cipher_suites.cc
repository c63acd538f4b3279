#include "net_socket/seal/cipher_suites.h"

#include <sodium/crypto_aead_chacha20poly1305.h>
#include <sys/auxv.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "net_socket/seal/key_schedule.h"

namespace tcpx {
namespace {

static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == Key32::size());
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == kTagBytes);
static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == kAeadNonceBytes);

class SodiumChaCha final : public Aead {
 public:
  explicit SodiumChaCha(const uint8_t* key) { std::memcpy(key_.data(), key, Key32::size()); }

  bool Seal(const AeadNonce& nonce, const char* ad, size_t ad_bytes, const char* in, size_t bytes, char* out) override {
    unsigned char* const to = reinterpret_cast<unsigned char*>(out);
    return crypto_aead_chacha20poly1305_ietf_encrypt_detached(
               to, to + bytes, nullptr, reinterpret_cast<const unsigned char*>(in), bytes,
               reinterpret_cast<const unsigned char*>(ad), ad_bytes, nullptr, nonce.data(), key_.data()) == 0;
  }

  bool Open(const AeadNonce& nonce, const char* ad, size_t ad_bytes, const char* in, size_t bytes, char* out) override {
    const unsigned char* const from = reinterpret_cast<const unsigned char*>(in);
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
               reinterpret_cast<unsigned char*>(out), nullptr, from, bytes, from + bytes,
               reinterpret_cast<const unsigned char*>(ad), ad_bytes, nonce.data(), key_.data()) == 0;
  }

 private:
  Key32 key_;
};

// The first four bytes of the output, and of the tag, for an all-zero key and nonce, no associated data and the sixteen
// bytes 0 to 15.
struct KnownAnswer {
  uint8_t cipher[4];
  uint8_t tag[4];
};

constexpr KnownAnswer kKnownAnswers[kCipherSuites] = {
    {{0x28, 0x74, 0x30, 0xb4}, {0x35, 0xa1, 0xbe, 0xcc}},
    {{0x03, 0x89, 0xd8, 0xcd}, {0x00, 0xe8, 0x40, 0x84}},
    {{0x9f, 0x06, 0xe5, 0xbd}, {0x20, 0x06, 0x02, 0xa8}},
};

bool Works(CipherSuite suite) {
  const uint8_t key[32] = {};
  const std::unique_ptr<Aead> aead = MakeAead(suite, key);
  if (aead == nullptr) return false;
  char text[16 + kTagBytes];
  for (int i = 0; i < 16; ++i) text[i] = static_cast<char>(i);
  const KnownAnswer& known = kKnownAnswers[static_cast<int>(suite)];
  return aead->Seal(AeadNonce(), "", 0, text, 16, text) && std::memcmp(text, known.cipher, sizeof(known.cipher)) == 0 &&
         std::memcmp(text + 16, known.tag, sizeof(known.tag)) == 0 && aead->Open(AeadNonce(), "", 0, text, 16, text) &&
         text[15] == 15;
}

// Without instructions for AES its tables leak what they are asked for, through the caches, and are slow. GCM's tag is
// as slow without an instruction for its product.
#if defined(__x86_64__)
bool HasAes() { return __builtin_cpu_supports("aes") != 0; }
bool HasCarrylessProduct() { return __builtin_cpu_supports("pclmul") != 0; }
#elif defined(__aarch64__)
// HWCAP_AES and HWCAP_PMULL of asm/hwcap.h.
bool HasAes() { return (getauxval(AT_HWCAP) & (1UL << 3)) != 0; }
bool HasCarrylessProduct() { return (getauxval(AT_HWCAP) & (1UL << 4)) != 0; }
#else
bool HasAes() { return false; }
bool HasCarrylessProduct() { return false; }
#endif

}  // namespace

std::unique_ptr<Aead> MakeLinkedInAead(const uint8_t* key) { return std::make_unique<SodiumChaCha>(key); }

std::unique_ptr<Aead> MakeAead(CipherSuite suite, const uint8_t* key) {
  std::unique_ptr<Aead> made = MakeGcryptAead(suite, key);
  if (made == nullptr && suite == CipherSuite::kChaCha20Poly1305) made = MakeLinkedInAead(key);
  return made;
}

std::string WhySlow(CipherSuite best, bool has_aes, const char* gcrypt_version) {
  if (best != CipherSuite::kChaCha20Poly1305) return "";
  if (gcrypt_version == nullptr) return "there is no libgcrypt.so.20 of 1.8 or later here: install it (libgcrypt20)";
  if (!has_aes) return "";
  return absl::StrCat("libgcrypt ", gcrypt_version,
                      " here refuses AES in the modes OCB and GCM, as it may in FIPS mode");
}

std::vector<CipherSuite> FindSuites(std::string* by, std::string* slow) {
  std::vector<CipherSuite> found;
  if (HasAes() && Works(CipherSuite::kAes128Ocb)) found.push_back(CipherSuite::kAes128Ocb);
  if (HasAes() && HasCarrylessProduct() && Works(CipherSuite::kAes128Gcm)) found.push_back(CipherSuite::kAes128Gcm);
  found.push_back(CipherSuite::kChaCha20Poly1305);
  *by = GcryptVersion() == nullptr
            ? "the plugin's own libsodium, which is slow: no libgcrypt.so.20 of 1.8 or later here"
            : absl::StrCat("libgcrypt ", GcryptVersion(), GcryptIsFips() ? " in FIPS mode" : "");
  if (slow != nullptr) *slow = WhySlow(found.front(), HasAes(), GcryptVersion());
  return found;
}

}  // namespace tcpx
