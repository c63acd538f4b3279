// A health socket whose cipher fails ends, and says so to its connections, whether it heals or not: what it would have
// to tell the peer later waited for ever. One that ends within a record says so too.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "net_socket/health/health_peer.h"
#include "tests/support/broken_cipher.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/health/health_pair.h"
#include "tests/unit/net_socket/health/health_records.h"

namespace tcpx {
namespace {

class HealthCipherTest : public HealthTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    HealthTest::SetUp();
    HealthSettings settings{kTimeout};
    settings.heals = GetParam();
    settings.encrypts = true;
    Encryption encryption({CipherSuite::kChaCha20Poly1305});
    reactor_.RunSync([&] {
      near_->UpInLoop(std::move(pair_.a), settings, encryption.Make(CipherSuite::kChaCha20Poly1305, Key32(), Key32()));
    });
  }

  TcpPair pair_ = MakeTcpPair(0);
};

TEST_P(HealthCipherTest, EndsTheSocket) {
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(2), "not you", false)));
  EXPECT_EQ("", near_comm_.Text());
  const BrokenCipher broken;
  (void)near_->socket().Say(FailureNotice(Id(1), "you", false));
  EXPECT_TRUE(near_comm_.Hears("died: the cipher failed")) << near_comm_.Text();
}

TEST_P(HealthCipherTest, AnEndWithinARecordIsNoEndOfThePeers) {
  (void)ReadAvailable(pair_.b.get());  // Else its end would be a reset.
  EXPECT_TRUE(WriteAll(pair_.b.get(), std::string("\x64\0\0\0", kSealedHeaderBytes) + std::string(20, 'x')));
  ASSERT_EQ(0, shutdown(pair_.b.get(), SHUT_WR));
  EXPECT_TRUE(near_comm_.Hears("died: the stream ended in the middle of a record")) << near_comm_.Text();
}

INSTANTIATE_TEST_SUITE_P(Sockets, HealthCipherTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Heals" : "DoesNot"; });

}  // namespace
}  // namespace tcpx
