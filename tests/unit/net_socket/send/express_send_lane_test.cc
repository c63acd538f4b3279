// Lane 0 alone, with an owner that only remembers: when it may be closed.
#include "net_socket/send/express_send_lane.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "common/socket.h"
#include "tests/support/fake_lane_owner.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

class ExpressSendLaneTest : public ::testing::Test {
 protected:
  // The peer does not read, and its kernel takes a part of the message only: the lane holds the rest.
  ExpressSendLaneTest() : lane_(&owner_, SettingsFor(pair_.a.get())) {
    const int least = 1;
    EXPECT_EQ(0, setsockopt(pair_.b.get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)));
    request_.data = payload_.data();
    request_.bytes = request_.message_bytes = payload_.size();
    request_.left.store(Units(payload_.size()));
    lane_.Post(&request_, true);
    lane_.Flush();
  }

  static ExpressSendLane::Settings SettingsFor(int fd) {
    ExpressSendLane::Settings settings;
    settings.fd = fd;
    settings.heals = true;
    return settings;
  }

  TcpPair pair_ = MakeTcpPair();
  FakeOwner owner_;
  ExpressSendLane lane_;
  const std::string payload_ = std::string(32 << 10, 'p');
  SendRequest request_;
};

TEST_F(ExpressSendLaneTest, MayCloseWhileThePeerLives) {
  EXPECT_LT(0, QueuedBytes(pair_.a.get()));
  EXPECT_TRUE(lane_.MayClose());
}

// Nobody has noticed yet that the socket died with the end of the message.
TEST_F(ExpressSendLaneTest, WaitsForAnotherSocketWhereItsOwnHasDied) {
  EXPECT_LT(0, QueuedBytes(pair_.a.get()));
  ResetSocket(std::move(pair_.b));
  pollfd died{pair_.a.get(), 0, 0};
  ASSERT_EQ(1, poll(&died, 1, 60000));
  EXPECT_FALSE(lane_.MayClose());
}

}  // namespace
}  // namespace tcpx
