#include "net_socket/connect/secret.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "common/random.h"

namespace tcpx {
namespace {

std::string Hex(const Mac& mac) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(mac.data()), mac.size()));
}

// RFC 4231, test cases 1, 2, 4 and 6: a key shorter than a block, of 25 bytes, and longer than a block.
TEST(SecretTest, SignsAsTheStandardSays) {
  EXPECT_EQ("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            Hex(Secret(std::string(20, '\x0b')).Sign({"Hi There"})));
  EXPECT_EQ("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            Hex(Secret("Jefe").Sign({"what do ya want ", "", "for nothing?"})));
  std::string counted;
  for (char c = 1; c <= 25; ++c) counted += c;
  EXPECT_EQ("82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            Hex(Secret(counted).Sign({std::string(25, '\xcd'), std::string(25, '\xcd')})));
  EXPECT_EQ("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            Hex(Secret(std::string(131, '\xaa')).Sign({"Test Using Larger Than Block-Size Key - Hash Key First"})));
}

TEST(SecretTest, ComparesAllBytes) {
  Mac mac = Secret("sixteen and more").Sign({"x"});
  std::string same(mac.begin(), mac.end());
  EXPECT_TRUE(Secret::Same(mac, same.data()));
  for (size_t i = 0; i < same.size(); ++i) {
    std::string wrong = same;
    wrong[i] ^= 1;
    EXPECT_FALSE(Secret::Same(mac, wrong.data())) << i;
  }
}

class SecretFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    const char* folder = getenv("TEST_TMPDIR");
    const std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/secret";
    unlink(path.c_str());
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  // Why it can't be used.
  std::string Refusal(const std::string& path) {
    auto secret = Secret::Load(path);
    EXPECT_FALSE(secret.ok()) << path;
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, secret.status().code());
    return secret.ok() ? "" : std::string(secret.status().message());
  }
  std::string Signature(const std::string& path) {
    auto secret = Secret::Load(path);
    EXPECT_TRUE(secret.ok()) << secret.status();
    return secret.ok() ? Hex((*secret)->Sign({"x"})) : "";
  }
};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(SecretFileTest, ANewlineAtTheEndDoesNotCount) {
  const std::string plain = Signature(Write("0123456789abcdef"));
  EXPECT_EQ(Hex(Secret("0123456789abcdef").Sign({"x"})), plain);
  EXPECT_EQ(plain, Signature(Write("0123456789abcdef\n")));
  EXPECT_EQ(plain, Signature(Write("0123456789abcdef\r\n")));
  EXPECT_NE(plain, Signature(Write("0123456789abcdef ")));
  EXPECT_NE(plain, Signature(Write("0123456789\nabcdef")));
}

TEST_F(SecretFileTest, TheLongestFits) {
  std::string longest;
  while (longest.size() < Secret::kBytesMax) longest += static_cast<char>('0' + longest.size() % 64);
  EXPECT_NE("", Signature(Write(longest + "\r\n")));
  EXPECT_TRUE(Has(Refusal(Write(longest + "l")), "more than 4096 bytes"));
  EXPECT_TRUE(Has(Refusal(Write(std::string(1 << 20, 'l'))), "more than 4096 bytes"));
}

TEST_F(SecretFileTest, WhatCannotBeUsedIsSaid) {
  EXPECT_TRUE(Has(Refusal("/nowhere/secret"), "TCPX_SECRET_FILE /nowhere/secret can't be opened: No such file"));
  EXPECT_TRUE(Has(Refusal("/"), "is not a file"));
  EXPECT_TRUE(Has(Refusal("/dev/zero"), "is not a file"));
  EXPECT_TRUE(Has(Refusal(Write("")), "is empty"));
  EXPECT_TRUE(Has(Refusal(Write("\n")), "is empty"));
  EXPECT_TRUE(Has(Refusal(Write("fifteen bytes..\n")), "holds 15 bytes"));
}

TEST_F(SecretFileTest, OneThatMayNotBeReadIsSaid) {
  const std::string path = Write("0123456789abcdef", 0);
  if (access(path.c_str(), R_OK) == 0) GTEST_SKIP() << "this user may read everything";
  EXPECT_TRUE(Has(Refusal(path), "can't be opened: Permission denied"));
}

TEST_F(SecretFileTest, OneThatOthersMayReadOrWriteIsRefused) {
  EXPECT_NE("", Signature(Write("0123456789abcdef", 0660)));
  for (const mode_t mode : {0644, 0604, 0602}) {
    const std::string path = Write("0123456789abcdef", mode);
    EXPECT_TRUE(Has(Refusal(path), "can be read or written by every user of this host: chmod 600 " + path)) << mode;
  }
}

TEST_F(SecretFileTest, OneThatCanBeGuessedIsRefusedWithTheCommandThatMakesAnother) {
  const std::string thirty_two = "0123456789abcde";  // 15 different ones
  for (const std::string& weak :
       {std::string(16, 'x'), std::string(32, '\0'), std::string("abababababababab"), std::string("sixseven sixseven"),
        thirty_two + thirty_two + "00", std::string(100, 'a') + "bcdefg",
        std::string("replace-this-by-what-openssl-rand-base64-32-writes\n")}) {
    EXPECT_TRUE(Has(Refusal(Write(weak)), "(umask 077; openssl rand -base64 32 >")) << weak;
  }
}

// As commands write them that users take.
TEST_F(SecretFileTest, RandomOnesAreTaken) {
  for (int i = 0; i < 200; ++i) {
    std::string random(32, '\0');
    ASSERT_TRUE(FillRandom(&random[0], random.size()).ok());
    EXPECT_NE("", Signature(Write(random + "\n")));
    EXPECT_NE("", Signature(Write(absl::Base64Escape(random))));
    EXPECT_NE("", Signature(Write(absl::BytesToHexString(random))));
    EXPECT_NE("", Signature(Write(random.substr(0, 16) + "x\n")));
  }
}

}  // namespace
}  // namespace tcpx
