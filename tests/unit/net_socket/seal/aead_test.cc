// The ciphers against the vectors of their standards, from every library that has them.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "absl/strings/escaping.h"
#include "net_socket/seal/cipher_suites.h"
#include "tests/unit/net_socket/seal/fips_mode.h"

namespace tcpx {
namespace {

struct Vector {
  const char* source;
  CipherSuite suite;
  const char* key;
  const char* nonce;
  const char* ad;
  const char* text;
  const char* sealed;  // and the tag
};

constexpr char kOcbKey[] = "000102030405060708090a0b0c0d0e0f";
constexpr char kForty[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627";

constexpr Vector kVectors[] = {
    {"RFC 7253 A, 1", CipherSuite::kAes128Ocb, kOcbKey, "bbaa99887766554433221100", "", "",
     "785407bfffc8ad9edcc5520ac9111ee6"},
    {"RFC 7253 A, 2", CipherSuite::kAes128Ocb, kOcbKey, "bbaa99887766554433221101", "0001020304050607",
     "0001020304050607", "6820b3657b6f615a5725bda0d3b4eb3a257c9af1f8f03009"},
    {"RFC 7253 A, 14", CipherSuite::kAes128Ocb, kOcbKey, "bbaa9988776655443322110d", kForty, kForty,
     "d5ca91748410c1751ff8a2f618255b68a0a12e093ff454606e59f9c1d0ddc54b65e8628e568bad7aed07ba06a4a69483a7035490c5769e6"
     "0"},
    {"GCM, test case 4", CipherSuite::kAes128Gcm, "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
     "ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac97"
     "3d58e0915bc94fbc3221a5db94fae95ae7121a47"},
    {"RFC 8439 2.8.2", CipherSuite::kChaCha20Poly1305,
     "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "070000004041424344454647",
     "50515253c0c1c2c3c4c5c6c7",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f756c64206f6666"
     "657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20776f756c642062652069"
     "742e",
     "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b29"
     "05d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b"
     "61161ae10b594f09e26a7e902ecbd0600691"},
};

std::string Bytes(const char* hex) { return absl::HexStringToBytes(hex); }

AeadNonce Nonce(const char* hex) {
  AeadNonce nonce;
  Bytes(hex).copy(reinterpret_cast<char*>(nonce.data()), nonce.size());
  return nonce;
}

const uint8_t* Data(const std::string& bytes) { return reinterpret_cast<const uint8_t*>(bytes.data()); }

void Check(const Vector& vector, Aead* aead) {
  SCOPED_TRACE(vector.source);
  const std::string ad = Bytes(vector.ad);
  const std::string text = Bytes(vector.text);
  std::string out(text.size() + kTagBytes, '\0');
  ASSERT_TRUE(aead->Seal(Nonce(vector.nonce), ad.data(), ad.size(), text.data(), text.size(), &out[0]));
  EXPECT_EQ(absl::BytesToHexString(out), vector.sealed);
  std::string in_place = text + std::string(kTagBytes, '\0');
  ASSERT_TRUE(aead->Seal(Nonce(vector.nonce), ad.data(), ad.size(), in_place.data(), text.size(), &in_place[0]));
  EXPECT_EQ(in_place, out);
  std::string opened(text.size() + 1, '\0');
  EXPECT_TRUE(aead->Open(Nonce(vector.nonce), ad.data(), ad.size(), out.data(), text.size(), &opened[0]));
  EXPECT_EQ(opened.substr(0, text.size()), text);
  for (size_t i = 0; i < out.size(); ++i) {
    std::string flipped = out;
    flipped[i] ^= static_cast<char>(1 << (i % 8));
    EXPECT_FALSE(aead->Open(Nonce(vector.nonce), ad.data(), ad.size(), flipped.data(), text.size(), &opened[0]));
  }
  EXPECT_TRUE(aead->Open(Nonce(vector.nonce), ad.data(), ad.size(), out.data(), text.size(), &out[0]));
  EXPECT_EQ(out.substr(0, text.size()), text);
}

TEST(AeadTest, KeepsToTheStandards) {
  std::string by;
  const std::vector<CipherSuite> suites = FindSuites(&by);
  ASSERT_FALSE(suites.empty());
  for (const Vector& vector : kVectors) {
    const std::string key = Bytes(vector.key);
    ASSERT_EQ(key.size(), KeyBytes(vector.suite));
    const auto aead = MakeAead(vector.suite, Data(key));
    if (aead != nullptr) {
      Check(vector, aead.get());
    } else {
      std::cout << "not here, and not checked: " << vector.source << "\n";
    }
  }
}

// Where a library has it too nothing else would ever run it.
TEST(AeadTest, WhatIsLinkedInKeepsToThemToo) {
  for (const Vector& vector : kVectors) {
    if (vector.suite != CipherSuite::kChaCha20Poly1305) continue;
    const std::string key = Bytes(vector.key);
    Check(vector, MakeLinkedInAead(Data(key)).get());
  }
}

// Without libgcrypt there is one suite; with it, on a processor that has AES, all, OCB first.
TEST(AeadTest, OffersWhatIsThere) {
  std::string by;
  const std::vector<CipherSuite> suites = FindSuites(&by);
  EXPECT_EQ(suites.back(), CipherSuite::kChaCha20Poly1305);
  std::cout << "ciphers by " << by << ": " << suites.size() << "\n";
#if defined(__x86_64__)
  if (GcryptVersion() != nullptr && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul")) {
    EXPECT_EQ(suites.front(), CipherSuite::kAes128Ocb);
    EXPECT_EQ(suites.size(), size_t{kCipherSuites});
  }
#endif
}

TEST(AeadTest, TellsOfASlowCipherWhatMakesItFast) {
  EXPECT_EQ("", WhySlow(CipherSuite::kAes128Ocb, true, "1.10.1"));
  EXPECT_EQ("", WhySlow(CipherSuite::kAes128Gcm, true, "1.10.1"));
  EXPECT_EQ("", WhySlow(CipherSuite::kChaCha20Poly1305, false, "1.10.1"));
  EXPECT_NE(std::string::npos, WhySlow(CipherSuite::kChaCha20Poly1305, false, nullptr).find("install it"));
  EXPECT_NE(std::string::npos, WhySlow(CipherSuite::kChaCha20Poly1305, true, nullptr).find("install it"));
  EXPECT_NE(std::string::npos, WhySlow(CipherSuite::kChaCha20Poly1305, true, "1.10.1").find("FIPS"));
}

// The library refuses some of its ciphers then; what is offered keeps to the standards for all that.
TEST(AeadTest, WhatIsOfferedInFipsModeKeepsToTheStandards) {
  const bool ran = RunsInFipsMode([] {
    std::string by;
    size_t checked = 0;
    for (const CipherSuite suite : FindSuites(&by)) {
      for (const Vector& vector : kVectors) {
        if (vector.suite != suite) continue;
        const auto aead = MakeAead(suite, Data(Bytes(vector.key)));
        if (aead == nullptr) return false;
        Check(vector, aead.get());
        ++checked;
      }
    }
    return checked > 0 && by.find("in FIPS mode") != std::string::npos;
  });
  if (!ran) GTEST_SKIP() << "no libgcrypt here honours LIBGCRYPT_FORCE_FIPS_MODE";
}

}  // namespace
}  // namespace tcpx
