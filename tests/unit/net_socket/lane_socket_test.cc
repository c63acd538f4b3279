#include "net_socket/lane_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "common/fd.h"
#include "common/socket.h"

namespace tcpx {
namespace {

// Congestion control of a socket that was set up with `options` towards this host or another.
std::string Congestion(const Options& options, bool same_host) {
  OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  LaneTraits traits;
  traits.family = AF_INET;
  traits.same_host = same_host;
  ConfigureLane(fd.get(), options, traits);
  return GetCongestion(fd.get()).value_or("unknown");
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

TEST(LaneSocketTest, AnUnknownAlgorithmLeavesTheLaneAsItWas) {
  Options options;
  options.congestion = "no_such_algo";
  const OwnedFd untouched(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(GetCongestion(untouched.get()).value_or("unknown"), Congestion(options, true));
}

}  // namespace
}  // namespace tcpx
