// What healing promises in addition to bytes: what was done arrives although its socket died, and a peer that is gone
// is reported.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "net_socket/message/wire.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

class HealingRulesTest : public RulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment["TCPX_HEAL"] = "1";
    settings.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
    settings.environment["TCPX_SPREAD_ERRORS"] = "0";  // One connection after the other fails.
    return settings;
  }

  void Kill(int sockets) {
    SocketKiller killer(TestSeed());
    for (int i = 0; i < sockets; ++i) (void)killer.KillOne();
  }

  // Tests both until the first is done. *other_done: the other, which may be null, is done too.
  absl::Status Finish(void* request, void* other, bool* other_done) {
    const Deadline deadline;
    int done = 0, done_too = 0;
    do {
      absl::Status status = PluginStatus(net().Test(request, &done, nullptr), "test");
      if (status.ok() && done == 0 && other != nullptr && done_too == 0) {
        status = PluginStatus(net().Test(other, &done_too, nullptr), "test of the other");
      }
      *other_done = done_too != 0;
      if (!status.ok() || done != 0) return status;
    } while (deadline.Yield());
    return absl::DeadlineExceededError("test: not done in time");
  }

  // The first error of a small send, or OK when there was none in time.
  absl::Status ErrorOfSending(void* comm) {
    const Deadline deadline(20);
    const std::string word = "word";
    while (!deadline.Over()) {
      auto request = PostSend(&net(), comm, word.data(), word.size());
      absl::Status status = request.ok() ? WaitFor(&net(), *request) : request.status();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
};

// The sender calls nothing any more.
TEST_P(HealingRulesTest, WhatWasDoneBeforeItsSocketDiedArrives) {
  Ends pair;
  MakePair(&pair);
  for (size_t bytes : {size_t{1}, size_t{1000}, size_t{60000}, kCopiedPayloadBytesMax, kCopiedPayloadBytesMax + 1}) {
    SCOPED_TRACE(bytes);
    const std::string sent(bytes, static_cast<char>('a' + bytes % 20));
    std::string buffer(bytes, '\0');
    auto request = PostSend(&net(), pair.send, sent.data(), bytes);
    ASSERT_TRUE(request.ok()) << request.status();
    // What is not copied is done when it was received.
    void* receive = nullptr;
    if (bytes > kCopiedPayloadBytesMax) {
      auto posted = PostReceive(&net(), pair.receive, &buffer[0], bytes);
      ASSERT_TRUE(posted.ok()) << posted.status();
      receive = *posted;
    }
    bool received = false;
    const absl::Status done = Finish(*request, receive, &received);
    ASSERT_TRUE(done.ok()) << done;
    Kill(3);
    absl::Status status;
    if (receive == nullptr) {
      status = Received(pair.receive, &buffer);
    } else if (!received) {
      status = WaitFor(&net(), receive);
    }
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(sent, buffer);
  }
}

TEST_P(HealingRulesTest, ClosingWaitsForALaneThatWasLost) {
  Ends pair;
  MakePair(&pair);
  const std::string sent(5000, 's');
  std::string buffer(5000, '\0');
  auto request = PostSend(&net(), pair.send, sent.data(), sent.size());
  ASSERT_TRUE(request.ok()) << request.status();
  const absl::Status done = WaitFor(&net(), *request);
  ASSERT_TRUE(done.ok()) << done;
  // Both ends are closed by then, or open: the lane itself shows its loss.
  SocketKiller killer(TestSeed());
  for (int i = 0; i < 2; ++i) (void)killer.KillOne();
  Deadline deadline(20);
  while (!LogHas(" goes on, ") && deadline.Yield()) {
  }
  ASSERT_TRUE(plugin_->Close({pair.send, nullptr}).ok());
  const absl::Status status = Received(pair.receive, &buffer);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(sent, buffer);
}

TEST_P(HealingRulesTest, AReceiverHearsOfASenderThatClosed) {
  for (int kills : {0, 20}) {
    Ends pair;
    MakePair(&pair);
    Kill(kills);
    ASSERT_TRUE(plugin_->Close({pair.send, nullptr}).ok());
    std::string buffer(1 << 20, '\0');
    const absl::Status status = Received(pair.receive, &buffer);
    EXPECT_EQ(absl::StatusCode::kInternal, status.code()) << status;
    ASSERT_TRUE(plugin_->Close({nullptr, pair.receive}).ok());
  }
}

TEST_P(HealingRulesTest, AReceiverHearsOfASenderThatAborts) {
  for (int kills : {0, 20}) {
    Ends pair;
    MakePair(&pair);
    std::string never(64 << 20, 'n');
    ASSERT_TRUE(PostSend(&net(), pair.send, never.data(), never.size()).ok());
    Kill(kills);
    ASSERT_TRUE(plugin_->Close({pair.send, nullptr}).ok());
    std::string buffer(64 << 20, '\0');
    const absl::Status status = Received(pair.receive, &buffer);
    EXPECT_EQ(absl::StatusCode::kInternal, status.code()) << status;
    ASSERT_TRUE(plugin_->Close({nullptr, pair.receive}).ok());
  }
}

TEST_P(HealingRulesTest, ASenderHearsOfAReceiverThatClosed) {
  for (int kills : {0, 20}) {
    Ends pair;
    MakePair(&pair);
    Kill(kills);
    ASSERT_TRUE(plugin_->Close({nullptr, pair.receive}).ok());
    EXPECT_EQ(absl::StatusCode::kInternal, ErrorOfSending(pair.send).code());
    ASSERT_TRUE(plugin_->Close({pair.send, nullptr}).ok());
  }
}

// What takes as long as TCPX_RECONNECT_TIMEOUT and 2 s.
class HealingPatienceTest : public HealingRulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = HealingRulesTest::Settings();
    settings.environment["TCPX_RECONNECT_TIMEOUT"] = "1";
    return settings;
  }
};

// The sender's calls have ended: housekeeping has to say it.
TEST_P(HealingPatienceTest, AReceiverHearsOfLanesThatCantComeBack) {
  Ends pair;
  MakePair(&pair);
  const std::string sent(1000, 's');
  auto request = PostSend(&net(), pair.send, sent.data(), sent.size());
  ASSERT_TRUE(request.ok()) << request.status();
  const absl::Status done = WaitFor(&net(), *request);
  ASSERT_TRUE(done.ok()) << done;
  StopListening();
  for (const LaneEnd& end : FindLaneEnds()) shutdown(end.fd, SHUT_RDWR);
  absl::Status status;
  std::string buffer(1000, '\0');
  // What has come may be read; after it nothing comes.
  for (int i = 0; i < 2 && status.ok(); ++i) status = Received(pair.receive, &buffer);
  EXPECT_EQ(absl::StatusCode::kInternal, status.code()) << status;
}

// epoll reports such a socket for ever: housekeeping spun.
TEST_P(HealingPatienceTest, AListenerThatWasShutDownIsSaidOnceAndLeftAlone) {
  Ends pair;
  MakePair(&pair);
  StopListening();
  const Deadline deadline;
  while (!LogHas("shut down its listening socket") && deadline.Yield()) {
  }
  Move(pair, "lanes that are up go on");
  EXPECT_EQ(1, CountInLog("shut down its listening socket")) << LogText();
}

INSTANTIATE_TEST_SUITE_P(EveryMode, HealingRulesTest, ::testing::ValuesIn(AllModes()), ModeName);
INSTANTIATE_TEST_SUITE_P(EveryMode, HealingPatienceTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
