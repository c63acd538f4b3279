#include "net_socket/seal/linked_in_aead.h"

#include <sodium/crypto_aead_chacha20poly1305.h>

#include <cstring>

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

}  // namespace

std::unique_ptr<Aead> MakeLinkedInAead(const uint8_t* key) { return std::make_unique<SodiumChaCha>(key); }

}  // namespace tcpx
