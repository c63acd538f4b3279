#include <net/if.h>

#include <string>
#include <vector>

#include "common/address.h"
#include "common/interfaces.h"
#include "gtest/gtest.h"
#include "tests/unit/common/fake_tree.h"

namespace tcpx {
namespace {

constexpr unsigned kUp = IFF_UP | IFF_RUNNING;

// A folder with the shape of /sys: a PCI card, a virtio card, and interfaces that are software only.
class HardwareTest : public testing::Test {
 protected:
  HardwareTest() {
    sysfs_.Folder("bus/pci");
    sysfs_.Folder("bus/virtio");
    AddDevice("devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1", "bus/pci", "eth0");
    sysfs_.File("devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/numa_node", "1\n");
    AddDevice("devices/pci0000:00/0000:00:03.0/virtio0", "bus/virtio", "eth1");
    for (const char* name : {"lo", "docker0", "br0", "bond0", "vlan7", "vxlan1", "tun0", "wg0", "veth1", "dummy0"}) {
      AddSoftware(name);
    }
    sysfs_.Folder("class/net/docker0/bridge");
    sysfs_.Folder("class/net/br0/bridge");
    sysfs_.Folder("class/net/bond0/bonding");
    sysfs_.File("class/net/vlan7/uevent", "DEVTYPE=vlan\nINTERFACE=vlan7\n");
    sysfs_.File("class/net/vlan7/iflink", "2\n");
    sysfs_.File("class/net/vxlan1/uevent", "INTERFACE=vxlan1\nDEVTYPE=vxlan");
    sysfs_.File("class/net/tun0/tun_flags", "0x1001\n");
    sysfs_.File("class/net/wg0/type", "65534\n");
    sysfs_.File("class/net/veth1/iflink", "41\n");
  }

  void AddDevice(const std::string& device, const std::string& bus, const std::string& ifname) {
    sysfs_.Folder(device);
    sysfs_.Link(device + "/subsystem", bus);
    sysfs_.Link("class/net/" + ifname + "/device", device);
    sysfs_.File("class/net/" + ifname + "/type", "1\n");
  }

  void AddSoftware(const std::string& ifname) {
    sysfs_.File("class/net/" + ifname + "/ifindex", "9\n");
    sysfs_.File("class/net/" + ifname + "/iflink", "9\n");
    sysfs_.File("class/net/" + ifname + "/type", "1\n");
  }

  FakeTree sysfs_;
};

TEST_F(HardwareTest, APciCardHasItsRealPath) {
  sysfs_.File("class/net/eth0/speed", "100000\n");
  const InterfaceHardware eth0 = ReadHardware(sysfs_.root(), "eth0");
  EXPECT_EQ(eth0.speed_mbps, 100000);
  EXPECT_EQ(eth0.pci_path, sysfs_.root() + "/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1");
  EXPECT_EQ(eth0.pci_bus_id, "0000:3b:00.1");
  EXPECT_EQ(eth0.numa_node, 1);
  EXPECT_FALSE(eth0.is_virtual);
}

TEST_F(HardwareTest, AnotherBusHasNoPciPath) {
  const InterfaceHardware eth1 = ReadHardware(sysfs_.root(), "eth1");
  EXPECT_EQ(eth1.pci_path, "");
  EXPECT_EQ(eth1.pci_bus_id, "");
  EXPECT_EQ(eth1.numa_node, -1);
  EXPECT_FALSE(eth1.is_virtual);
}

TEST_F(HardwareTest, SoftwareAndVanishedInterfacesAreVirtual) {
  for (const char* name : {"lo", "veth1", "docker0", "gone7"}) {
    const InterfaceHardware hardware = ReadHardware(sysfs_.root(), name);
    EXPECT_TRUE(hardware.is_virtual) << name;
    EXPECT_EQ(hardware.pci_path, "") << name;
    EXPECT_EQ(hardware.speed_mbps, 10000) << name;
  }
}

TEST_F(HardwareTest, ASpeedThatTellsNothingIsTheDefault) {
  for (const char* text : {"-1\n", "0\n", "", "fast\n", "99999999999999\n"}) {
    sysfs_.File("class/net/eth0/speed", text);
    EXPECT_EQ(ReadHardware(sysfs_.root(), "eth0").speed_mbps, 10000) << text;
  }
}

struct KindCase {
  const char* name;
  unsigned flags;
  const char* want;
};

TEST_F(HardwareTest, KindsAreReported) {
  const KindCase cases[] = {
      {"lo", kUp | IFF_LOOPBACK, "loopback"},
      {"docker0", kUp, "docker bridge"},
      {"br0", kUp, "bridge"},
      {"bond0", kUp, "bond"},
      {"vlan7", kUp, "vlan"},
      {"vxlan1", kUp, "tunnel"},
      {"tun0", kUp, "tunnel"},
      {"wg0", kUp, "tunnel"},
      {"dummy0", kUp | IFF_POINTOPOINT, "tunnel"},
      {"veth1", kUp, "veth pair"},
      {"dummy0", kUp, "virtual"},
      {"eth0", kUp, "physical"},
      {"eth1", kUp, "physical"},
      {"gone7", kUp, "virtual"},
  };
  for (const KindCase& one : cases) {
    EXPECT_EQ(InterfaceKind(one.name, one.flags, sysfs_.root()), one.want) << one.name;
  }
}

struct CautionCase {
  const char* name;
  unsigned flags;
  const char* address;
  const char* want;  // a part of the text; empty: no caution at all
};

TEST_F(HardwareTest, CautionsNameWhatMayNotReachOthers) {
  const CautionCase cases[] = {
      {"eth0", kUp, "10.0.0.1", ""},
      {"eth0", kUp, "fe80::1", "link-local address"},
      {"eth1", kUp, "fe80::2", "link-local addresses only"},
      {"bond0", kUp, "169.254.1.1", "link-local addresses only"},
      {"lo", kUp | IFF_LOOPBACK, "127.0.0.1", "this host only"},
      {"docker0", kUp, "172.17.0.1", "docker"},
      {"tun0", kUp, "10.8.0.1", "tunnel"},
      {"veth1", kUp, "10.9.0.1", "veth pair"},
  };
  std::vector<Interface> all;
  for (const CautionCase& one : cases) all.push_back({one.name, 0, *SocketAddress::Parse(one.address), one.flags, 0});
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string text = InterfaceCaution(all, all[i], sysfs_.root());
    const std::string want = cases[i].want;
    EXPECT_EQ(text.empty(), want.empty()) << all[i].name << ": " << text;
    EXPECT_NE(text.find(want), std::string::npos) << all[i].name << ": " << text;
    EXPECT_EQ(text.find("NCCL_SOCKET_IFNAME") != std::string::npos, !want.empty()) << "what chooses another: " << text;
  }
}

TEST_F(HardwareTest, ACautionSaysBothOfAVethWithoutARoutableAddress) {
  const Interface veth = {"veth1", 0, *SocketAddress::Parse("169.254.7.7"), kUp, 0};
  const std::string text = InterfaceCaution({veth}, veth, sysfs_.root());
  EXPECT_NE(text.find("veth pair"), std::string::npos) << text;
  EXPECT_NE(text.find("link-local addresses only"), std::string::npos) << text;
}

struct SkippedCase {
  const char* name;
  unsigned flags;
  const char* address;
  const char* want;
};

// A host with a card, and with all interfaces that people wonder about.
TEST_F(HardwareTest, WhatIsSkippedIsNamedWithItsKindAndTheReason) {
  const SkippedCase cases[] = {
      {"eth0", kUp, "10.0.0.1", ""},
      {"lo", kUp | IFF_LOOPBACK, "127.0.0.1", "lo (loopback)"},
      {"docker0", kUp, "172.17.0.1", "docker0 (docker bridge)"},
      {"tun0", IFF_UP, "10.8.0.1", "tun0 (tunnel, down)"},
      {"veth1", kUp, "fe80::1", "veth1 (veth pair, link-local only, no address of NCCL_SOCKET_FAMILY)"},
      {"bond0", kUp, "169.254.1.1", ""},
  };
  std::vector<Interface> all;
  std::string want;
  for (const SkippedCase& one : cases) {
    all.push_back({one.name, 0, *SocketAddress::Parse(one.address), one.flags, 0});
    if (*one.want != '\0') want += (want.empty() ? "" : ", ") + std::string(one.want);
  }
  const InterfaceFilter filter = {"", "AF_INET", ""};
  EXPECT_EQ(SkippedInterfaces(all, SelectInterfaces(all, filter), filter, sysfs_.root()), want);
}

TEST_F(HardwareTest, WhatTheVariableLeavesOutIsNamedSo) {
  std::vector<Interface> all;
  for (const char* name : {"eth0", "docker0", "veth1"})
    all.push_back({name, 0, *SocketAddress::Parse("10.0.0.1"), kUp, 0});
  const auto skipped = [&](const std::string& spec) {
    const InterfaceFilter filter = {spec, "", ""};
    return SkippedInterfaces(all, SelectInterfaces(all, filter), filter, sysfs_.root());
  };
  EXPECT_EQ(skipped("^docker"), "docker0 (docker bridge, left out by NCCL_SOCKET_IFNAME)");
  EXPECT_EQ(skipped("=docker0"),
            "eth0 (physical, left out by NCCL_SOCKET_IFNAME), veth1 (veth pair, left out by NCCL_SOCKET_IFNAME)");
  EXPECT_EQ(skipped("=eth0,docker0,veth1"), "");
}

TEST_F(HardwareTest, OfManySkippedOnesSomeAreNamed) {
  std::vector<Interface> all;
  for (int i = 0; i < 40; ++i) all.push_back({"veth" + std::to_string(i), 0, *SocketAddress::Parse("10.0.0.1"), 0, 0});
  const std::string text = SkippedInterfaces(all, {}, {"", "", ""}, sysfs_.root());
  EXPECT_NE(text.find("veth31 "), std::string::npos) << text;
  EXPECT_EQ(text.find("veth32 "), std::string::npos) << text;
  EXPECT_NE(text.find("and 8 more"), std::string::npos) << text;
}

}  // namespace
}  // namespace tcpx
