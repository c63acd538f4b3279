// Listening on a range of ports, on real sockets of a loopback interface whose ports nobody else takes.
#include "net_socket/nic/nic_socket.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/socket.h"

namespace tcpx {
namespace {

Nic Loopback() {
  Nic nic;
  nic.interface.name = "lo";
  nic.interface.address = *SocketAddress::Parse("127.0.0.1");
  return nic;
}

// Ports that nobody had a moment ago.
PortRange FreeRange(int ports) {
  for (;;) {
    const auto fd = ListenOnNic(Loopback(), false, PortRange());
    const int low = LocalAddress(fd->get())->port();
    if (low + ports < 65536) return {low, low + ports - 1};
  }
}

// A connection that ends at the listening side first, which then waits in TIME_WAIT.
void LeaveTimeWait(int listener) {
  const SocketAddress address = *LocalAddress(listener);
  OwnedFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(0, connect(client.get(), address.sockaddr(), address.length()));
  OwnedFd server(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(server.valid());
  server.reset();
  char byte;
  ASSERT_EQ(0, recv(client.get(), &byte, 1, 0));
}

// An address chooses no path: what lies in nobody's subnet, or in two, goes by a route.
TEST(NicSocketTest, AnAddressAloneDoesNotSayByWhichInterface) {
  Nic near = Loopback();
  near.interface.prefix_bits = 8;
  Nic far = Loopback();
  far.interface.prefix_bits = 32;
  Nic other = near;
  other.interface.name = "other";
  const SocketAddress peer = *SocketAddress::Parse("127.0.0.2:9");
  const auto fd = ListenOnNic(near, false, PortRange());
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(LeavesBy(fd->get(), near, {near}, peer));
  EXPECT_FALSE(LeavesBy(fd->get(), near, {near, other}, peer));
  EXPECT_FALSE(LeavesBy(fd->get(), far, {far}, peer));
  near.interface.address = *SocketAddress::Parse("127.0.0.3");
  EXPECT_FALSE(LeavesBy(fd->get(), near, {near}, peer)) << "by another's address";
  if (!BindToDevice(fd->get(), "lo").ok()) return;  // before Linux 5.7
  if (getenv("TCPX_TEST_EMULATOR") != nullptr) GTEST_SKIP() << "qemu-user can't say what a socket is tied to";
  EXPECT_TRUE(LeavesBy(fd->get(), far, {far, other}, peer));
}

TEST(NicSocketTest, ARestartedRunHasThePortOfTheLast) {
  const PortRange range = FreeRange(1);
  for (int run = 0; run < 3; ++run) {
    const auto fd = ListenOnNic(Loopback(), false, range);
    ASSERT_TRUE(fd.ok()) << "run " << run << ": " << fd.status();
    EXPECT_EQ(range.low, LocalAddress(fd->get())->port());
    LeaveTimeWait(fd->get());
  }
}

// Both may be bound before either listens.
TEST(NicSocketTest, TwoAtOnceHaveAPortEach) {
  const PortRange range = FreeRange(2);
  for (int round = 0; round < 300; ++round) {
    absl::StatusOr<OwnedFd> mine, other;
    std::thread thread([&] { other = ListenOnNic(Loopback(), false, range); });
    mine = ListenOnNic(Loopback(), false, range);
    thread.join();
    ASSERT_TRUE(mine.ok()) << mine.status();
    ASSERT_TRUE(other.ok()) << other.status();
  }
}

TEST(NicSocketTest, ARangeThatIsUsedUpNamesWhoHasIt) {
  const PortRange range = FreeRange(1);
  const auto first = ListenOnNic(Loopback(), false, range);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string text(ListenOnNic(Loopback(), false, range).status().message());
  const std::string taken = absl::StrCat("TCPX_PORT_RANGE=", range.low, "-", range.low,
                                         " has no free port (taken: ", range.low, " by process ", getpid(), " (");
  EXPECT_NE(std::string::npos, text.find(taken)) << text;
}

// For this thread only.
bool DropLowPorts() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  data[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
  return syscall(SYS_capset, &header, data) == 0;
}

// As a user without privileges; `dropped`: it worked.
absl::StatusOr<OwnedFd> ListenAsAnybody(const PortRange& range, bool* dropped) {
  absl::StatusOr<OwnedFd> fd;
  std::thread([&] {
    *dropped = DropLowPorts();
    fd = ListenOnNic(Loopback(), false, range);
  }).join();
  return fd;
}

TEST(NicSocketTest, APortThatIsForbiddenIsNotCalledUsed) {
  bool dropped = false;
  const absl::StatusOr<OwnedFd> fd = ListenAsAnybody({1, 3}, &dropped);
  if (!dropped || fd.ok()) GTEST_SKIP() << "here everyone may have every port";
  const std::string text(fd.status().message());
  EXPECT_NE(std::string::npos, text.find("Permission denied (13)")) << text;
  EXPECT_EQ(std::string::npos, text.find("no free port")) << text;
  EXPECT_NE(std::string::npos, text.find("ip_unprivileged_port_start")) << text;
}

// The first port that is not reserved; 0: unknown.
int FirstOfAll() {
  std::ifstream file("/proc/sys/net/ipv4/ip_unprivileged_port_start");
  int port = 0;
  file >> port;
  return port;
}

TEST(NicSocketTest, ForbiddenPortsOfARangeArePassedOver) {
  const int first = FirstOfAll();
  if (first < 3) GTEST_SKIP() << "here everyone may have every port";
  bool dropped = false;
  const absl::StatusOr<OwnedFd> fd = ListenAsAnybody({first - 2, first + 30}, &dropped);
  if (!dropped) GTEST_SKIP() << "privileges can't be dropped here";
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_LE(first, LocalAddress(fd->get())->port());
}

TEST(NicSocketTest, ARangeOfForbiddenAndTakenPortsSaysBoth) {
  const int first = FirstOfAll();
  if (first < 2) GTEST_SKIP() << "here everyone may have every port";
  const absl::StatusOr<OwnedFd> taken = ListenOnNic(Loopback(), false, {first, first});
  bool dropped = false;
  const absl::StatusOr<OwnedFd> fd = ListenAsAnybody({first - 1, first}, &dropped);
  if (!dropped) GTEST_SKIP() << "privileges can't be dropped here";
  ASSERT_FALSE(fd.ok());
  const std::string text(fd.status().message());
  EXPECT_NE(std::string::npos, text.find("has no free port")) << text;
  EXPECT_NE(std::string::npos, text.find("1 of its ports this user may not have")) << text;
}

}  // namespace
}  // namespace tcpx
