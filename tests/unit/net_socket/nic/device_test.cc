#include "net_socket/nic/device.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/support/kept_log.h"

namespace tcpx {
namespace {

// A folder that replaces /sys, where the loopback device looks like a network card.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/sysXXXXXX";
    ASSERT_NE(nullptr, mkdtemp(name.data()));
    root_ = std::filesystem::canonical(name);
    std::filesystem::create_directories(root_ / "class/net/lo");
    options_.ifname = "lo";
    options_.family = "AF_INET";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void File(const std::string& path, const std::string& text) { std::ofstream(root_ / path) << text; }

  void PutOnBus(const std::string& device, const std::string& bus) {
    std::filesystem::create_directories(root_ / device);
    std::filesystem::create_directories(root_ / "bus" / bus);
    std::filesystem::create_directory_symlink(root_ / "bus" / bus, root_ / device / "subsystem");
    std::filesystem::create_directory_symlink(root_ / device, root_ / "class/net/lo/device");
  }

  DeviceProperties LoopbackProperties() {
    table_ = DeviceTable::Find(options_, root_.string());
    EXPECT_EQ(1, table_.count());
    return table_.count() == 1 ? table_.Properties(0) : DeviceProperties();
  }

  std::filesystem::path root_;
  Options options_;
  DeviceTable table_;
};

TEST_F(DeviceTest, VirtualInterface) {
  const DeviceProperties properties = LoopbackProperties();
  EXPECT_STREQ("lo", properties.name);
  EXPECT_EQ(nullptr, properties.pci_path);
  EXPECT_EQ(kDefaultSpeedMbps, properties.speed_mbps);
}

TEST_F(DeviceTest, NetworkCard) {
  const std::string card = "devices/pci0000:3a/0000:3b:00.0";
  PutOnBus(card, "pci");
  File("class/net/lo/speed", "100000\n");
  const DeviceProperties properties = LoopbackProperties();
  EXPECT_EQ((root_ / card).string(), properties.pci_path);
  EXPECT_EQ(100000, properties.speed_mbps);
}

TEST_F(DeviceTest, DeviceThatIsNotOnAPciBus) {
  PutOnBus("devices/vmbus/net0", "vmbus");
  EXPECT_EQ(nullptr, LoopbackProperties().pci_path);
}

TEST_F(DeviceTest, SpeedThatTheDriverDoesNotKnow) {
  for (const char* text : {"-1\n", "0\n", "", "fast\n"}) {
    File("class/net/lo/speed", text);
    EXPECT_EQ(kDefaultSpeedMbps, LoopbackProperties().speed_mbps) << text;
  }
}

TEST_F(DeviceTest, WhereTheSpeedIsFrom) {
  const auto read = [&] { return ReadHardware(root_.string(), "lo"); };
  EXPECT_EQ(SpeedSource::kAssumed, read().speed_source);
  File("class/net/lo/speed", "10000\n");
  EXPECT_EQ(SpeedSource::kVirtual, read().speed_source) << "an end of a veth pair";
  File("class/net/lo/uevent", "DEVTYPE=bond\nINTERFACE=lo\n");
  EXPECT_EQ(SpeedSource::kKernel, read().speed_source);
  PutOnBus("devices/virtio0", "virtio");
  EXPECT_EQ(SpeedSource::kVirtual, read().speed_source);
  EXPECT_EQ(0, read().vendor);
  File("devices/virtio0/vendor", "0x1af4\n");
  EXPECT_EQ(0x1af4, read().vendor);
  options_.speed_mbps = "lo=200000";
  EXPECT_EQ(200000, LoopbackProperties().speed_mbps) << "and NCCL hears so";
}

TEST_F(DeviceTest, WhatNcclLearns) {
  const DeviceProperties properties = LoopbackProperties();
  EXPECT_EQ(static_cast<int>(MemoryType::kHost), properties.pointer_support);
  EXPECT_EQ(1, properties.max_receives);
  EXPECT_EQ(size_t{1} << 40, properties.max_p2p_bytes);
  EXPECT_LT(0u, properties.max_collective_bytes);
  EXPECT_LT(1000, properties.max_comms);
  EXPECT_EQ(std::vector<int>{0}, properties.children);
}

TEST_F(DeviceTest, HowManyReceivesAGroupMayHave) {
  constexpr int kHost = static_cast<int>(MemoryType::kHost);
  constexpr int kGpu = kHost | static_cast<int>(MemoryType::kCuda);
  EXPECT_EQ(1, MaxReceives(options_, kHost));
  EXPECT_EQ(8, MaxReceives(options_, kGpu));
  options_.max_receives = 3;
  EXPECT_EQ(3, MaxReceives(options_, kHost));
  EXPECT_EQ(3, MaxReceives(options_, kGpu));
  EXPECT_EQ(3, LoopbackProperties().max_receives);
}

TEST_F(DeviceTest, NamesLiveAsLongAsTheTable) {
  DeviceTable moved;
  {
    DeviceTable table = DeviceTable::Find(options_, root_.string());
    moved = std::move(table);
  }
  EXPECT_STREQ("lo", moved.Properties(0).name);
}

TEST_F(DeviceTest, WhereNoInterfaceFitsTheWarningListsThem) {
  KeptLog log;
  options_.ifname = "=nosuchinterface";
  EXPECT_EQ(0, DeviceTable::Find(options_, root_.string()).count());
  const std::vector<std::string> warnings = log.Warnings();
  ASSERT_EQ(1u, warnings.size());
  EXPECT_TRUE(absl::StrContains(warnings[0], "; there are: ")) << warnings[0];
  EXPECT_TRUE(absl::StrContains(warnings[0], "lo (loopback")) << warnings[0];
}

}  // namespace
}  // namespace tcpx
