// Messages of 128 KiB, NCCL's chunk of point-to-point and all-to-all, in pool mode: short as they are, no bulk lane may
// be left out.
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"

namespace tcpx {
namespace {

constexpr size_t kBytes = 128 << 10;
constexpr int kMessages = 32;
constexpr int kBulkLanes = 8;

// Sockets of this process that have sent more than a hello.
int LanesUsed() {
  int used = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    tcp_info info{};
    socklen_t length = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_bytes_sent > 10000) ++used;
  }
  return used;
}

class LaneSpreadTest : public RulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment = {{"NCCL_SOCKET_SNDBUF", "32768"}, {"NCCL_SOCKET_RCVBUF", "32768"}};
    return settings;
  }
};

// Nobody receives, so a lane that is full stays full.
TEST_P(LaneSpreadTest, MessagesGoToEveryLaneThatHasRoom) {
  Ends pair;
  MakePair(&pair);
  static const std::string payload(kBytes, 'p');  // The comms go in TearDown, with sends unfinished.
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(PostSend(&net(), pair.send, payload.data(), payload.size()).ok()) << LogText();
  }
  Deadline deadline(10);
  while (LanesUsed() < kBulkLanes && deadline.Yield()) {
  }
  EXPECT_EQ(kBulkLanes, LanesUsed());
}

INSTANTIATE_TEST_SUITE_P(Pools, LaneSpreadTest,
                         ::testing::Values(Mode{.threads = 2, .engine = "epoll", .lanes = kBulkLanes + 1},
                                           Mode{.threads = 2, .engine = "io_uring", .lanes = kBulkLanes + 1}),
                         ModeName);

}  // namespace
}  // namespace tcpx
