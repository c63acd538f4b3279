#include "common/this_host.h"

#include <gtest/gtest.h>

namespace tcpx {
namespace {

TEST(ThisHostTest, TheMarkIsTheSameEachTime) {
  EXPECT_NE(0u, HostMark());
  EXPECT_EQ(HostMark(), HostMark());
}

TEST(ThisHostTest, WhoseAnAddressIs) {
  EXPECT_EQ("lo", InterfaceWith(*SocketAddress::Parse("127.0.0.1:80")));
  EXPECT_EQ("", InterfaceWith(*SocketAddress::Parse("192.0.2.1:80")));
}

}  // namespace
}  // namespace tcpx
