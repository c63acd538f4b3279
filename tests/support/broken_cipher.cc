#include "tests/support/broken_cipher.h"

#include <atomic>
#include <memory>
#include <utility>

#include "net_socket/seal/cipher_suites.h"

namespace {

std::atomic<bool> broken{false};

class Breakable final : public tcpx::Aead {
 public:
  explicit Breakable(std::unique_ptr<tcpx::Aead> real) : real_(std::move(real)) {}

  bool Seal(const tcpx::AeadNonce& nonce, const char* ad, size_t ad_bytes, const char* in, size_t bytes,
            char* out) override {
    return !broken && real_->Seal(nonce, ad, ad_bytes, in, bytes, out);
  }
  bool Open(const tcpx::AeadNonce& nonce, const char* ad, size_t ad_bytes, const char* in, size_t bytes,
            char* out) override {
    return real_->Open(nonce, ad, ad_bytes, in, bytes, out);
  }

 private:
  const std::unique_ptr<tcpx::Aead> real_;
};

}  // namespace

// Named as the linker names what it puts in MakeAead's place (--wrap), and MakeAead itself.
std::unique_ptr<tcpx::Aead> RealMakeAead(tcpx::CipherSuite suite,
                                         const uint8_t* key) __asm__("__real__ZN4tcpx8MakeAeadENS_11CipherSuiteEPKh");
std::unique_ptr<tcpx::Aead> WrappedMakeAead(tcpx::CipherSuite suite, const uint8_t* key) __asm__(
    "__wrap__ZN4tcpx8MakeAeadENS_11CipherSuiteEPKh");

std::unique_ptr<tcpx::Aead> WrappedMakeAead(tcpx::CipherSuite suite, const uint8_t* key) {
  std::unique_ptr<tcpx::Aead> real = RealMakeAead(suite, key);
  return real == nullptr ? nullptr : std::make_unique<Breakable>(std::move(real));
}

namespace tcpx {

BrokenCipher::BrokenCipher() { broken = true; }

BrokenCipher::~BrokenCipher() { broken = false; }

}  // namespace tcpx
