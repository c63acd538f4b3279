// The first error of a connection, and who hears of it.
#include "net_socket/comm/connection_failure.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/unit/net_socket/comm/fake_end.h"

namespace tcpx {
namespace {

class ConnectionFailureTest : public ::testing::Test {
 protected:
  void SetUp() override { Logged().clear(); }

  Options options_;
  Runtime runtime_{options_};
  FakeEnd end_;
};

TEST_F(ConnectionFailureTest, TheFirstErrorSticksAndIsToldOnce) {
  const ConnectionSetup setup = FakeSetup(&runtime_);
  ConnectionFailure failure(&setup, Direction::kSend, &end_);
  EXPECT_FALSE(failure.failed());
  EXPECT_TRUE(failure.status().ok());
  failure.FailLane(absl::UnavailableError("first"), 0);
  failure.Fail(absl::UnavailableError("second"), 0);
  failure.FailWithPeer("third");
  EXPECT_EQ(ConnectionState::kFailed, failure.state());
  EXPECT_EQ("first", failure.status().message());
  EXPECT_EQ("first", failure.Refusal().message());
  ASSERT_EQ(1u, Logged().size());
  EXPECT_TRUE(absl::StrContains(Logged()[0], "send device 0 lane 0 of 1")) << Logged()[0];
  EXPECT_EQ(std::vector<std::string>{"first"}, end_.told);
  failure.MoveToClosed();
  EXPECT_EQ(ConnectionState::kClosed, failure.state());
}

TEST_F(ConnectionFailureTest, ASilentOneWritesNothingAndHushesItsCommunicator) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure failure(&setup, Direction::kReceive, &end_);
  failure.Fail(absl::UnavailableError("closed"), 0, Noise::kSilent);
  EXPECT_TRUE(failure.failed());
  EXPECT_TRUE(Logged().empty());
  EXPECT_TRUE(group->hushed());
  EXPECT_EQ("", group->cause());
}

TEST_F(ConnectionFailureTest, WhatFollowsFromAnotherConnectionIsQuiet) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure first(&setup, Direction::kSend, &end_);
  ConnectionFailure second(&setup, Direction::kReceive, &end_);
  first.FailWithPeer("a cable");
  EXPECT_EQ("a cable", group->cause());
  EXPECT_EQ("the peer failed: a cable", first.status().message());
  second.FailWithCommunicator(group->cause());
  EXPECT_EQ("another connection of the communicator failed: a cable", second.status().message());
  EXPECT_EQ(1u, Logged().size());
}

TEST_F(ConnectionFailureTest, ARefusalRepeatsTheWarningWhereItIsWanted) {
  options_.stall_warn_ns = 1;
  for (bool wanted : {false, true}) {
    const ConnectionSetup setup = FakeSetup(&runtime_, nullptr, wanted);
    ConnectionFailure failure(&setup, Direction::kSend, &end_);
    failure.FailFound(absl::UnavailableError("gone"), kNoLane);
    Logged().clear();
    (void)failure.Refusal();
    while (wanted && Logged().empty()) (void)failure.Refusal();
    ASSERT_EQ(wanted ? 1u : 0u, Logged().size());
    EXPECT_TRUE(!wanted || absl::StrContains(Logged()[0], "still failed: comm 0 send")) << Logged()[0];
  }
}

}  // namespace
}  // namespace tcpx
