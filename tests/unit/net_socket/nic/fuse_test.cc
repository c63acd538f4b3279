#include "net_socket/nic/fuse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tcpx {
namespace {

using Plan = std::vector<std::vector<int>>;

std::vector<Interface> Interfaces(const std::vector<std::string>& names) {
  std::vector<Interface> interfaces;
  for (const std::string& name : names) {
    Interface one;
    one.name = name;
    one.address = *SocketAddress::Parse(name == "v6" ? "fd00::1" : "10.0.0.1");
    interfaces.push_back(one);
  }
  return interfaces;
}

const std::vector<Interface>& Five() {
  static const auto* five = new std::vector<Interface>(Interfaces({"eth0", "eth1", "eth2", "v6", "eth4"}));
  return *five;
}

Plan PlanOf(const std::string& spec, std::vector<std::string>* warnings) { return PlanFusion(spec, Five(), warnings); }

TEST(FuseTest, GroupsTakeThePlaceOfTheirMembers) {
  struct Row {
    const char* spec;
    Plan expected;
  };
  const Row rows[] = {
      {"", {{0}, {1}, {2}, {3}, {4}}},
      {"eth1+eth2", {{0}, {1, 2}, {3}, {4}}},
      {"eth2+eth1", {{0}, {2, 1}, {3}, {4}}},
      {"eth4+eth0", {{4, 0}, {1}, {2}, {3}}},
      {"eth0+eth4,eth1+eth2", {{0, 4}, {1, 2}, {3}}},
      {"eth2+eth4,eth0+eth1,", {{0, 1}, {2, 4}, {3}}},
      {"eth0+eth1+eth2+eth4", {{0, 1, 2, 4}, {3}}},
  };
  for (const Row& row : rows) {
    std::vector<std::string> warnings;
    EXPECT_EQ(row.expected, PlanOf(row.spec, &warnings)) << row.spec;
    EXPECT_TRUE(warnings.empty()) << row.spec << ": " << warnings[0];
  }
}

TEST(FuseTest, GroupsThatCannotBeAreLeftOutWithAWarning) {
  struct Row {
    const char* spec;
    const char* warning;
    Plan expected;
  };
  const Plan none = {{0}, {1}, {2}, {3}, {4}};
  const Row rows[] = {
      {"eth1+eth9",
       "TCPX_FUSE: eth1+eth9 is not fused: 'eth9' is not among the interfaces in use (eth0, eth1, eth2, v6, eth4): "
       "correct the name, or let NCCL_SOCKET_IFNAME choose it too",
       none},
      {"eth1+", "TCPX_FUSE: eth1+ is not fused: '' is not among", none},
      {"eth1", "TCPX_FUSE: eth1 is not fused: a group is two interfaces or more", none},
      {"eth1+eth1", "TCPX_FUSE: eth1+eth1 is not fused: 'eth1' is there twice", none},
      {"eth1+v6", "eth1 (10.0.0.1) and v6 (fd00::1) have addresses of different families: set NCCL_SOCKET_FAMILY",
       none},
      {"eth1+eth2,eth2+eth4",
       "TCPX_FUSE: eth2+eth4 is not fused: 'eth2' is in another group already",
       {{0}, {1, 2}, {3}, {4}}},
      {"eth9+eth1,eth1+eth2", "'eth9' is not among", {{0}, {1, 2}, {3}, {4}}},
  };
  for (const Row& row : rows) {
    std::vector<std::string> warnings;
    EXPECT_EQ(row.expected, PlanOf(row.spec, &warnings)) << row.spec;
    ASSERT_EQ(1u, warnings.size()) << row.spec;
    EXPECT_NE(std::string::npos, warnings[0].find(row.warning)) << warnings[0];
  }
}

TEST(FuseTest, EightInterfacesAtMost) {
  std::vector<std::string> names;
  for (int i = 0; i < 9; ++i) names.push_back("e" + std::to_string(i));
  EXPECT_EQ("9 interfaces are too many: a device has 8 at most", WhyNotFused(Interfaces(names)));
  names.pop_back();
  EXPECT_EQ("", WhyNotFused(Interfaces(names)));
}

}  // namespace
}  // namespace tcpx
