#include "net_socket/nic/lane_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "common/fd.h"
#include "common/socket.h"
#include "tests/support/kept_log.h"

namespace tcpx {
namespace {

// A lane that was set up with `options` towards this host or another.
OwnedFd Lane(const Options& options, bool same_host) {
  OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  PathFacts facts;
  facts.family = AF_INET;
  facts.same_host = same_host;
  ConfigureLane(fd.get(), MakePathProfile(options, facts), nullptr);
  return fd;
}

std::string Congestion(const Options& options, bool same_host) {
  return GetCongestion(Lane(options, same_host).get()).value_or("unknown");
}

// Doubled by the kernel.
int ReceiveBuffer(int fd) {
  int bytes = 0;
  socklen_t length = sizeof(bytes);
  return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) == 0 ? bytes : -1;
}

TEST(LaneSocketTest, NothingPacesOnTheSameHostUnlessAskedTo) {
  const OwnedFd untouched(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string system = GetCongestion(untouched.get()).value_or("unknown");
  Options options;
  EXPECT_EQ("reno", Congestion(options, true));
  EXPECT_EQ(system, Congestion(options, false));
  options.congestion = system;
  EXPECT_EQ(system, Congestion(options, true));
  options.congestion = "reno";
  EXPECT_EQ("reno", Congestion(options, false));
}

TEST(LaneSocketTest, TheReceiveBufferIsFixedOnTheSameHostOnly) {
  const OwnedFd untouched(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Options options;
  EXPECT_EQ(ReceiveBuffer(untouched.get()), ReceiveBuffer(Lane(options, false).get()));
  const int fixed = ReceiveBuffer(Lane(options, true).get());
  EXPECT_NE(ReceiveBuffer(untouched.get()), fixed);
  EXPECT_GE(2 * (384 << 10), fixed) << "less where net.core.rmem_max is lower";
  options.rcvbuf = 50000;
  EXPECT_EQ(100000, ReceiveBuffer(Lane(options, true).get()));
}

// The kernel's auto-tuning of a send buffer ends for good where one is set.
TEST(LaneSocketTest, NoSendBufferIsLockedUnasked) {
  constexpr int kBufLock = 72;  // SO_BUF_LOCK, Linux 5.15
  const auto lock = [](int fd) {
    int bits = 0;
    socklen_t length = sizeof(bits);
    return getsockopt(fd, SOL_SOCKET, kBufLock, &bits, &length) == 0 ? bits : -1;
  };
  const OwnedFd untouched(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (lock(untouched.get()) < 0) GTEST_SKIP() << "this kernel does not tell";
  PathFacts facts;
  facts.family = AF_INET;
  facts.kind = LaneKind::kBulk;
  Options options;
  const OwnedFd lane(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ConfigureLane(lane.get(), MakePathProfile(options, facts), nullptr);
  EXPECT_EQ(0, lock(lane.get()));
  options.sndbuf = 100000;
  ConfigureLane(lane.get(), MakePathProfile(options, facts), nullptr);
  EXPECT_EQ(1, lock(lane.get())) << "SOCK_SNDBUF_LOCK, as asked for";
}

int Option(int fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof(value);
  return getsockopt(fd, level, option, &value, &length) == 0 ? value : -1;
}

// A firewall on the path forgets a silent flow after minutes, and then drops or resets it.
TEST(LaneSocketTest, AnIdleLaneSpeaksOnceAMinuteAndIsNotEndedByIt) {
  const OwnedFd lane = Lane(Options(), false);
  EXPECT_EQ(1, Option(lane.get(), SOL_SOCKET, SO_KEEPALIVE));
  EXPECT_EQ(60, Option(lane.get(), IPPROTO_TCP, TCP_KEEPIDLE));
  EXPECT_EQ(60, Option(lane.get(), IPPROTO_TCP, TCP_KEEPINTVL));
  EXPECT_LE(120, Option(lane.get(), IPPROTO_TCP, TCP_KEEPCNT));
}

TEST(LaneSocketTest, AnUnknownAlgorithmLeavesTheLaneAsItWas) {
  Options options;
  options.congestion = "no_such_algo";
  const OwnedFd untouched(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(GetCongestion(untouched.get()).value_or("unknown"), Congestion(options, true));
}

TEST(LaneSocketTest, WhatWasAskedForAndIsNotHadIsOneWarningForAllLanes) {
  Options options;
  options.congestion = "no_such_algo";
  PathFacts facts;
  facts.family = AF_INET;
  LaneNotes notes;
  KeptLog log;
  for (int lane = 0; lane < 4; ++lane) {
    const OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ConfigureLane(fd.get(), MakePathProfile(options, facts), &notes);
  }
  const std::vector<std::string> warnings = log.Warnings();
  ASSERT_EQ(1u, warnings.size());
  EXPECT_NE(std::string::npos, warnings[0].find("TCPX_CONGESTION: ")) << warnings[0];
  EXPECT_NE(std::string::npos, warnings[0].find("no_such_algo")) << warnings[0];
}

}  // namespace
}  // namespace tcpx
