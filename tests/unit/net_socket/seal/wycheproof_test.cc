// The vectors of Project Wycheproof, run against the ciphers and the key agreement as the plugin calls them. testdata/
// has those that fit the plugin's sizes of keys, nonces and tags, with source and licence. There are none of OCB.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/key_schedule.h"
#include "tests/unit/net_socket/seal/fips_mode.h"

namespace tcpx {
namespace {

using Row = std::vector<std::string>;
using Make = std::function<std::unique_ptr<Aead>(const uint8_t*)>;

constexpr size_t kGcmVectors = 49;
constexpr size_t kChaChaVectors = 293;
constexpr size_t kX25519Vectors = 518;

// All rows, which have so many columns.
std::vector<Row> Read(const std::string& name, size_t columns) {
  std::ifstream file("tests/unit/net_socket/seal/testdata/" + name);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    Row row = absl::StrSplit(line, '|');
    EXPECT_EQ(columns, row.size()) << line;
    if (row.size() == columns) rows.push_back(std::move(row));
  }
  return rows;
}

// tcId|key|iv|aad|msg|ct|tag|result
void Try(const Row& row, const Make& make) {
  SCOPED_TRACE("vector " + row[0]);
  std::string key = absl::HexStringToBytes(row[1]);
  key.resize(32);
  const std::string ad = absl::HexStringToBytes(row[3]);
  const std::string text = absl::HexStringToBytes(row[4]);
  const std::string sealed = absl::HexStringToBytes(row[5] + row[6]);
  const bool valid = row[7] == "valid";
  const std::unique_ptr<Aead> aead = make(reinterpret_cast<const uint8_t*>(key.data()));
  ASSERT_NE(nullptr, aead);
  AeadNonce nonce;
  absl::HexStringToBytes(row[2]).copy(reinterpret_cast<char*>(nonce.data()), nonce.size());
  std::string out(text.size() + kTagBytes, '\0');
  EXPECT_TRUE(aead->Seal(nonce, ad.data(), ad.size(), text.data(), text.size(), &out[0]));
  EXPECT_EQ(valid, out == sealed);
  std::string opened = sealed;
  EXPECT_EQ(valid, aead->Open(nonce, ad.data(), ad.size(), &opened[0], text.size(), &opened[0]));
  if (valid) {
    EXPECT_EQ(text, opened.substr(0, text.size()));
  }
}

// Whether there is such a cipher here; all vectors are tried then.
bool TryAll(const std::vector<Row>& rows, const Make& make) {
  const uint8_t zeros[32] = {};
  if (make(zeros) == nullptr) return false;
  for (const Row& row : rows) Try(row, make);
  return true;
}

Make OfGcrypt(CipherSuite suite) {
  return [suite](const uint8_t* key) { return MakeGcryptAead(suite, key); };
}

TEST(WycheproofTest, AesGcm) {
  const std::vector<Row> rows = Read("aes_128_gcm.txt", 8);
  ASSERT_EQ(kGcmVectors, rows.size());
  const bool tried = TryAll(rows, OfGcrypt(CipherSuite::kAes128Gcm));
  ASSERT_EQ(GcryptVersion() != nullptr, tried);
  if (!tried) GTEST_SKIP() << "there is no libgcrypt here";
}

TEST(WycheproofTest, ChaCha20Poly1305) {
  const std::vector<Row> rows = Read("chacha20_poly1305.txt", 8);
  ASSERT_EQ(kChaChaVectors, rows.size());
  EXPECT_TRUE(TryAll(rows, MakeLinkedInAead));
}

TEST(WycheproofTest, ChaCha20Poly1305OfLibgcrypt) {
  const std::vector<Row> rows = Read("chacha20_poly1305.txt", 8);
  const bool tried = TryAll(rows, OfGcrypt(CipherSuite::kChaCha20Poly1305));
  ASSERT_EQ(GcryptVersion() != nullptr && !GcryptIsFips(), tried);
  if (!tried) GTEST_SKIP() << "there is no libgcrypt with ChaCha20 here";
}

// What is offered in FIPS mode, where libgcrypt refuses some of its ciphers, is right too.
TEST(WycheproofTest, WhatIsOfferedInFipsMode) {
  const bool ran = RunsInFipsMode([] {
    std::string by;
    bool right = true;
    for (const CipherSuite suite : FindSuites(&by)) {
      if (suite == CipherSuite::kAes128Ocb) continue;
      const bool gcm = suite == CipherSuite::kAes128Gcm;
      const Make make = [suite](const uint8_t* key) { return MakeAead(suite, key); };
      right = TryAll(Read(gcm ? "aes_128_gcm.txt" : "chacha20_poly1305.txt", 8), make) && right;
    }
    return right;
  });
  if (!ran) GTEST_SKIP() << "no libgcrypt here honours LIBGCRYPT_FORCE_FIPS_MODE";
}

// A result of zeros is refused, which the vectors allow, and which the handshake must.
TEST(WycheproofTest, X25519) {
  const std::vector<Row> rows = Read("x25519.txt", 5);
  ASSERT_EQ(kX25519Vectors, rows.size());
  for (const Row& row : rows) {
    SCOPED_TRACE("vector " + row[0]);
    const std::string own = absl::HexStringToBytes(row[1]);
    const std::string peer = absl::HexStringToBytes(row[2]);
    const std::string expected = absl::HexStringToBytes(row[3]);
    ASSERT_TRUE(own.size() == Key32::size() && peer.size() == Key32::size());
    Key32 random;
    std::memcpy(random.data(), own.data(), Key32::size());
    Key32 shared;
    const bool agreed = EphemeralKey(random).Agree(peer.data(), &shared);
    EXPECT_EQ(expected != std::string(Key32::size(), '\0'), agreed);
    if (agreed) {
      EXPECT_EQ(expected, shared.view());
    }
  }
}

}  // namespace
}  // namespace tcpx
