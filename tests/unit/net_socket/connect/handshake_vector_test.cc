// The handshake of an encrypted socket, byte by byte, against what another implementation made of docs/security.md.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "net_socket/connect/handshake.h"
#include "net_socket/seal/cipher_suites.h"
#include "tests/unit/net_socket/connect/handshake_sides.h"

namespace tcpx {
namespace {

// The acceptor's private key is drawn first, and then the dialler's.
uint8_t g_next = 0;

}  // namespace

// Named as the linker names what it puts in FillRandom's place (--wrap).
absl::Status Count(void* data, size_t bytes) __asm__("__wrap__ZN4tcpx10FillRandomEPvm");

absl::Status Count(void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) static_cast<uint8_t*>(data)[i] = g_next++;
  return absl::OkStatus();
}

namespace {

constexpr char kHello[] =
    "544350580100000004000000ffffffff101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2fff07000000000000"
    "0000010000000000";
constexpr char kChallenge[] = "5443507201000800010000000000000042010000000000000000000000000000";
constexpr char kPublicA[] = "8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f";
constexpr char kPublicD[] = "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254";
constexpr char kMacS[] = "0b01a7a12225ba831cc08d6e06cb2592e8d6d6cb2dec4219018d54f5d6fd439b";
constexpr char kAnswer[] = "544350720100000001000000000000003f000000000000000000000000000000";
constexpr char kMacC[] = "c985c5b566f05b8ce1e0c3edc93411f4cf0e5e3e75269ec43f5cbf36e938fe35";
constexpr char kRecordS[] = "10000000f2cf639b3e3a884c542d280abe8895f1983dcde3d0eb8e8e690a23969c7d5f9c";
constexpr char kRecordC[] = "10000000b0425a3dda170ac6d513bffe1339353ec6f2717d26a76517efe720705e28730f";

std::string Hex(const std::string& bytes) { return absl::BytesToHexString(bytes); }

std::string SealedHex(Sealer* sealer) {
  std::string text = "the first record";
  const iovec piece{&text[0], text.size()};
  EXPECT_TRUE(sealer->Seal(&piece, 1));
  return Hex(std::string(static_cast<char*>(sealer->rest().iov_base), sealer->rest().iov_len));
}

TEST(HandshakeVectorTest, IsAsItIsWrittenDown) {
  std::string by;
  if (FindSuites(&by).front() != CipherSuite::kAes128Ocb) GTEST_SKIP() << "no OCB here";
  Secret secret("sixteen and more");
  secret.Encrypt(std::make_unique<Encryption>(
      std::vector<CipherSuite>{CipherSuite::kAes128Ocb, CipherSuite::kAes128Gcm, CipherSuite::kChaCha20Poly1305}));
  Hello hello;
  hello.lanes = 4;
  for (size_t i = 0; i < 16; ++i) {
    hello.ticket[i] = static_cast<uint8_t>(0x10 + i);
    hello.connection_id[i] = static_cast<uint8_t>(0x20 + i);
  }
  hello.features = kFeatureHealth | kFeatureEstablished | kFeatureHeal | kFeatureHealHealth | kFeaturePilot;
  hello.express_bytes = 65536;
  DialHandshake dial(hello, &secret);
  AcceptHandshake accept(&secret);
  std::string said = dial.TakeSaid();
  EXPECT_EQ(kHello, Hex(said));
  Feed(&accept, said, said.size());
  said = accept.TakeSaid();
  EXPECT_EQ(std::string(kChallenge) + kPublicA, Hex(said));
  Feed(&dial, said, said.size());
  said = dial.TakeSaid();
  EXPECT_EQ(std::string(kPublicD) + kMacS, Hex(said));
  Feed(&accept, said, said.size());
  ASSERT_EQ(AcceptHandshake::State::kGreeted, accept.state());
  Answer answer;
  answer.features = hello.features;
  said = accept.Encode(answer);
  EXPECT_EQ(std::string(kAnswer) + kMacC, Hex(said));
  Feed(&dial, said, said.size());
  ASSERT_TRUE(dial.done()) << dial.status();
  EXPECT_EQ(kRecordS, SealedHex(dial.TakeSeals().sealer.get()));
  EXPECT_EQ(kRecordC, SealedHex(accept.TakeSeals().sealer.get()));
}

}  // namespace
}  // namespace tcpx
