// The vectors of Project Wycheproof (github.com/C2SP/wycheproof, Apache-2.0), run against the ciphers and the key
// agreement as the plugin calls them. They are not part of this repository: TCPX_WYCHEPROOF names a folder that has
// x25519_test.json, aes_gcm_test.json and chacha20_poly1305_test.json (its testvectors_v1); without it this is skipped.
// There are none of OCB.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/gcrypt.h"
#include "net_socket/seal/key_schedule.h"
#include "net_socket/seal/linked_in_aead.h"
#include "tests/support/json.h"

namespace tcpx {
namespace {

class WycheproofTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (getenv("TCPX_WYCHEPROOF") == nullptr) GTEST_SKIP() << "TCPX_WYCHEPROOF names no folder with vectors";
  }
  static Json Read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(std::string(getenv("TCPX_WYCHEPROOF")) + "/" + name).rdbuf();
    Json json;
    std::string error;
    EXPECT_TRUE(ParseJson(text.str(), &json, &error)) << name << ": " << error;
    return json;
  }
};

std::string Bytes(const Json& test, const char* name) { return absl::HexStringToBytes(test[name].text); }

// How many vectors were tried.
int TryAead(const Json& file, size_t key_bits, const std::function<std::unique_ptr<Aead>(const uint8_t*)>& make) {
  int tried = 0;
  for (const Json& group : file["testGroups"].list) {
    const bool ours = group["ivSize"].number == 96 && group["tagSize"].number == 128 &&
                      group["keySize"].number == static_cast<double>(key_bits);
    if (!ours) continue;
    for (const Json& test : group["tests"].list) {
      const std::string id = std::to_string(test["tcId"].number) + " " + test["comment"].text;
      std::string key = Bytes(test, "key");
      key.resize(32);
      const std::string iv = Bytes(test, "iv");
      const std::string ad = Bytes(test, "aad");
      const std::string text = Bytes(test, "msg");
      const std::string sealed = Bytes(test, "ct") + Bytes(test, "tag");
      const bool valid = test["result"].text == "valid";
      const std::unique_ptr<Aead> aead = make(reinterpret_cast<const uint8_t*>(key.data()));
      if (aead == nullptr) return tried;
      AeadNonce nonce;
      iv.copy(reinterpret_cast<char*>(nonce.data()), nonce.size());
      std::string out(text.size() + kTagBytes, '\0');
      EXPECT_TRUE(aead->Seal(nonce, ad.data(), ad.size(), text.data(), text.size(), &out[0])) << id;
      EXPECT_EQ(valid, out == sealed) << id;
      std::string opened = sealed;
      EXPECT_EQ(valid, aead->Open(nonce, ad.data(), ad.size(), &opened[0], text.size(), &opened[0])) << id;
      if (valid) {
        EXPECT_EQ(text, opened.substr(0, text.size())) << id;
      }
      ++tried;
    }
  }
  return tried;
}

TEST_F(WycheproofTest, AesGcm) {
  const int tried = TryAead(Read("aes_gcm_test.json"), 128,
                            [](const uint8_t* key) { return MakeGcryptAead(CipherSuite::kAes128Gcm, key); });
  if (tried == 0) GTEST_SKIP() << "there is no libgcrypt with GCM here";
  EXPECT_GT(tried, 50);
  RecordProperty("vectors", tried);
}

TEST_F(WycheproofTest, ChaCha20Poly1305) {
  const Json file = Read("chacha20_poly1305_test.json");
  EXPECT_GT(TryAead(file, 256, MakeLinkedInAead), 200);
  TryAead(file, 256, [](const uint8_t* key) { return MakeGcryptAead(CipherSuite::kChaCha20Poly1305, key); });
}

// A result of zeros is refused, which the vectors allow, and which the handshake must.
TEST_F(WycheproofTest, X25519) {
  int tried = 0;
  const Json file = Read("x25519_test.json");
  for (const Json& group : file["testGroups"].list) {
    for (const Json& test : group["tests"].list) {
      const std::string id = std::to_string(test["tcId"].number) + " " + test["comment"].text;
      const std::string own = Bytes(test, "private");
      const std::string peer = Bytes(test, "public");
      const std::string expected = Bytes(test, "shared");
      if (own.size() != 32 || peer.size() != 32) continue;
      Key32 random;
      std::memcpy(random.data(), own.data(), Key32::size());
      Key32 shared;
      const bool agreed = EphemeralKey(random).Agree(peer.data(), &shared);
      EXPECT_EQ(expected != std::string(32, '\0'), agreed) << id;
      if (agreed) {
        EXPECT_EQ(expected, shared.view()) << id;
      }
      ++tried;
    }
  }
  EXPECT_GT(tried, 500);
}

}  // namespace
}  // namespace tcpx
