// Which interfaces share a subnet, and what sysctls let a socket be tied to one of them.
#include "net_socket/nic/routing.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tcpx {
namespace {

Interface One(const std::string& name, const std::string& address, int prefix_bits,
              unsigned flags = IFF_UP | IFF_RUNNING) {
  Interface interface;
  interface.name = name;
  interface.address = *SocketAddress::Parse(address);
  interface.prefix_bits = prefix_bits;
  interface.flags = flags;
  return interface;
}

TEST(SharedSubnetTest, WhoSharesASubnet) {
  using Names = std::vector<std::string>;
  const std::vector<Interface> all = {
      One("lo", "127.0.0.1", 8),   One("eth0", "10.0.0.1", 24),         One("eth1", "10.0.1.1", 24),
      One("eth2", "10.0.1.2", 24), One("eth3", "10.0.1.3", 24, IFF_UP), One("eth4", "10.0.2.1", 24),
      One("eth4", "10.0.2.2", 24), One("eth5", "10.0.1.77", 32),        One("eth1", "fd00::1", 64),
      One("eth6", "fd00::6", 64),  One("eth1", "fe80::1", 64),          One("eth6", "fe80::6", 64),
      One("eth7", "127.0.0.2", 8),
  };
  struct Row {
    size_t which;
    Names sharers;
  };
  const Row rows[] = {
      {0, {}},
      {1, {}},
      {2, {"eth2", "eth5"}},
      {3, {"eth1", "eth5"}},
      {5, {}},
      {7, {"eth1", "eth2"}},
      {8, {"eth6"}},
      {9, {"eth1"}},
      {10, {}},
  };
  for (const Row& row : rows) EXPECT_EQ(row.sharers, SharersOfSubnet(all[row.which], all)) << row.which;
}

TEST(SharedSubnetTest, WhoKeepsToItself) {
  struct Row {
    ArpRules rules;
    bool keeps;
  };
  const Row rows[] = {
      {{0, 0, 0}, false}, {{1, 2, 0}, true},  {{1, 2, 2}, true},  {{2, 2, 0}, true},
      {{1, 2, 1}, false}, {{1, 0, 0}, false}, {{0, 2, 2}, false}, {{8, 2, 2}, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.keeps, KeepsToItself(One("eth0", "10.0.0.1", 24), row.rules));
    EXPECT_TRUE(KeepsToItself(One("eth0", "fd00::1", 64), row.rules));
  }
}

TEST(SharedSubnetTest, RulesAreTheLargerOfAllAndTheInterfacesOwn) {
  std::string root = ::testing::TempDir() + "/procXXXXXX";
  ASSERT_NE(nullptr, mkdtemp(root.data()));
  const auto set = [&](const std::string& name, const std::string& rule, int value) {
    const std::string folder = root + "/sys/net/ipv4/conf/" + name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + rule) << value << "\n";
  };
  set("all", "arp_ignore", 1);
  set("eth0", "arp_ignore", 0);
  set("all", "arp_announce", 0);
  set("eth0", "arp_announce", 2);
  set("all", "rp_filter", 1);
  set("eth0", "rp_filter", 2);
  const ArpRules rules = ReadArpRules(root, "eth0");
  EXPECT_EQ(1, rules.ignore);
  EXPECT_EQ(2, rules.announce);
  EXPECT_EQ(2, rules.rp_filter);
  EXPECT_EQ(0, ReadArpRules(root + "/nowhere", "eth0").ignore);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace tcpx
