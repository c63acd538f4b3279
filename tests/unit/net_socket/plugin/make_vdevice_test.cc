// makeVDevice and TCPX_FUSE on a host with ten cards: what devices and getProperties say before and after. The cards
// are a folder in the place of /sys; their interfaces are those of a network of the test's own.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "net_socket/plugin/plugin.h"
#include "tests/support/fake_cards.h"
#include "tests/support/own_network.h"
#include "tests/unit/common/fake_tree.h"

namespace tcpx {
namespace {

constexpr int kCards = 10;

// The first five cards are 10 to 50 Gbit/s fast; eth3 is on no bus.
class MakeVDeviceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (InOwnNetwork()) MakeInterfaces(kCards);
  }

  void SetUp() override {
    if (!InOwnNetwork()) GTEST_SKIP() << "no network of the test's own";
    sysfs_.Folder("bus/pci");
    for (int i = 0; i < kCards; ++i) {
      sysfs_.File("class/net/" + CardName(i) + "/speed", std::to_string((i + 1) * 10000) + "\n");
      if (i == 3) continue;
      sysfs_.Folder(CardPath(i));
      sysfs_.Link(CardPath(i) + "/subsystem", "bus/pci");
      sysfs_.Link("class/net/" + CardName(i) + "/device", CardPath(i));
    }
    setenv("NCCL_SOCKET_IFNAME", "eth", 1);
    setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
    unsetenv("TCPX_FUSE");
    plugin_ = std::make_unique<Plugin>(sysfs_.root());
  }

  int Devices() { return plugin_->DeviceCount().value_or(-1); }
  DeviceProperties Properties(int device) {
    auto properties = plugin_->GetProperties(device);
    EXPECT_TRUE(properties.ok()) << properties.status();
    return properties.ok() ? *properties : DeviceProperties();
  }
  std::string Refusal(const std::vector<int>& children) {
    auto made = plugin_->MakeVirtualDevice(children);
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, made.status().code());
    return std::string(made.status().message());
  }

  FakeTree sysfs_;
  std::unique_ptr<Plugin> plugin_;
};

TEST_F(MakeVDeviceTest, TheNewDeviceIsAfterTheOthers) {
  ASSERT_EQ(kCards, Devices());
  auto made = plugin_->MakeVirtualDevice({4, 1});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(kCards, *made);
  EXPECT_EQ(kCards + 1, Devices());
  const DeviceProperties fused = Properties(kCards);
  EXPECT_STREQ("eth4+eth1", fused.name);
  EXPECT_EQ(sysfs_.root() + "/" + CardPath(4), fused.pci_path);
  EXPECT_EQ(70000, fused.speed_mbps);
  EXPECT_EQ((std::vector<int>{4, 1}), fused.children);
  for (int i = 0; i < kCards; ++i) {
    EXPECT_EQ(std::vector<int>{i}, Properties(i).children);
    EXPECT_NE(fused.guid, Properties(i).guid);
    EXPECT_EQ(CardName(i), Properties(i).name);
  }
}

TEST_F(MakeVDeviceTest, SeveralDevicesAndTheirNamesStay) {
  const char* first = Properties(0).name;
  std::vector<const char*> names;
  for (int round = 0; round < 20; ++round) {
    auto made = plugin_->MakeVirtualDevice({0, 1});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(kCards + round, *made);
    names.push_back(Properties(*made).name);
  }
  EXPECT_EQ(first, Properties(0).name);
  for (int round = 0; round < 20; ++round) EXPECT_EQ(names[round], Properties(kCards + round).name);
}

// NCCL 2.24 and 2.25 offered single devices, too; such a one has its child's name.
TEST_F(MakeVDeviceTest, OneChild) {
  auto made = plugin_->MakeVirtualDevice({2});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_STREQ("eth2", Properties(*made).name);
  EXPECT_EQ(30000, Properties(*made).speed_mbps);
}

TEST_F(MakeVDeviceTest, EightChildren) {
  auto made = plugin_->MakeVirtualDevice({0, 1, 2, 4, 5, 6, 7, 8});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(8u, Properties(*made).children.size());
  EXPECT_EQ("9 interfaces are too many: a device has 8 at most", Refusal({0, 1, 2, 4, 5, 6, 7, 8, 9}));
}

TEST_F(MakeVDeviceTest, Refusals) {
  EXPECT_EQ("device 3 (eth3) is on no PCI bus: NCCL can't use a device made of it; fuse it with TCPX_FUSE instead",
            Refusal({0, 3}));
  EXPECT_EQ("device 10: there are 10 devices", Refusal({0, 10}));
  EXPECT_EQ("device -1: there are 10 devices", Refusal({-1, 0}));
  EXPECT_EQ("'eth1' is there twice", Refusal({1, 1}));
  ASSERT_TRUE(plugin_->MakeVirtualDevice({0, 1}).ok());
  EXPECT_EQ("device 10 (eth0+eth1) is a virtual one itself", Refusal({10, 2}));
  EXPECT_EQ(kCards + 1, Devices());
}

TEST_F(MakeVDeviceTest, AddressesOfDifferentFamilies) {
  ASSERT_EQ(0, std::system("ip address flush dev eth5 && ip address add fd00:5::1/64 dev eth5 nodad"));
  unsetenv("NCCL_SOCKET_FAMILY");
  ASSERT_STREQ("eth5", Properties(9).name);  // The system lists IPv4 addresses first.
  EXPECT_EQ(
      "eth0 (10.0.0.1), eth5 (fd00:5::1) have addresses of no common family: give each of them an IPv4 address, or "
      "each "
      "an IPv6 address that reaches beyond its link",
      Refusal({0, 9}));
  ASSERT_EQ(0, std::system("ip address add 10.0.5.1/24 dev eth5"));
}

TEST_F(MakeVDeviceTest, FuseVariableListsTheFusedDeviceInsteadOfItsMembers) {
  setenv("TCPX_FUSE", "eth1+eth3,eth4+eth5", 1);
  ASSERT_EQ(kCards - 2, Devices());
  EXPECT_STREQ("eth0", Properties(0).name);
  EXPECT_STREQ("eth1+eth3", Properties(1).name);
  EXPECT_STREQ("eth2", Properties(2).name);
  EXPECT_STREQ("eth4+eth5", Properties(3).name);
  EXPECT_EQ(60000, Properties(1).speed_mbps);
  EXPECT_EQ(sysfs_.root() + "/" + CardPath(1), Properties(1).pci_path);
  // For NCCL it is a card like any other, which it may fuse with more.
  EXPECT_EQ(std::vector<int>{1}, Properties(1).children);
  auto made = plugin_->MakeVirtualDevice({0, 3});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_STREQ("eth0+eth4+eth5", Properties(*made).name);
  EXPECT_EQ((std::vector<int>{0, 3}), Properties(*made).children);
  EXPECT_EQ(120000, Properties(*made).speed_mbps);
}

}  // namespace
}  // namespace tcpx
