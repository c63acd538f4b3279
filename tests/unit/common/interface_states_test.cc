// Which interfaces are out, and how often the kernel is asked.
#include <gtest/gtest.h>

#include <string>

#include "common/address.h"
#include "common/clock.h"
#include "common/interfaces.h"

namespace tcpx {
namespace {

SocketAddress At(const char* host) {
  auto address = SocketAddress::Parse(host);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.value_or(SocketAddress());
}

TEST(InterfaceStatesTest, EachAddressIsLookedAtOnceASecond) {
  std::string asked;
  InterfaceStates states([&asked](const SocketAddress& local) {
    asked += local.HostString() + ";";
    return asked.size() > 30 ? "eth0" : "";
  });
  for (int64_t ns = 1; ns < kSecond; ns += kSecond / 10) {
    EXPECT_EQ("", states.Down(At("10.0.0.1:1"), ns));
    EXPECT_EQ("", states.Down(At("10.0.0.2:2"), ns));
    EXPECT_EQ("", states.Down(At("10.0.0.1:3"), ns));
  }
  EXPECT_EQ("10.0.0.1;10.0.0.2;", asked);
  asked += "a second later, it is out: ";
  EXPECT_EQ("eth0", states.Down(At("10.0.0.1:1"), kSecond + 1));
  EXPECT_EQ("", InterfaceStates([](const SocketAddress&) { return ""; }).Down(At("10.0.0.1"), 0));
}

TEST(InterfaceStatesTest, AnAddressThatNobodyHasIsOut) {
  EXPECT_EQ("with 192.0.2.77", DownInterfaceOf(At("192.0.2.77:5")));
}

}  // namespace
}  // namespace tcpx
