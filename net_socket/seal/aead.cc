#include "net_socket/seal/aead.h"

namespace tcpx {
namespace {

struct SuiteFacts {
  size_t key_bytes;
  const char* name;
};

constexpr SuiteFacts kFacts[kCipherSuites] = {{16, "aes128-ocb"}, {16, "aes128-gcm"}, {32, "chacha20-poly1305"}};

const SuiteFacts& FactsOf(CipherSuite suite) { return kFacts[static_cast<int>(suite)]; }

}  // namespace

size_t KeyBytes(CipherSuite suite) { return FactsOf(suite).key_bytes; }

const char* SuiteName(CipherSuite suite) { return FactsOf(suite).name; }

}  // namespace tcpx
