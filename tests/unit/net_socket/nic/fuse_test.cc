#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "net_socket/nic/device_params.h"

namespace tcpx {
namespace {

using Plan = std::vector<std::vector<int>>;

// "v6..." has an address of IPv6; "both..." one of IPv4, and after it one of IPv6; "back..." the reverse.
std::vector<FuseCandidate> Interfaces(const std::vector<std::string>& names) {
  std::vector<FuseCandidate> candidates;
  for (const std::string& name : names) {
    Interface v4, v6;
    v4.name = v6.name = name;
    v4.address = *SocketAddress::Parse("10.0.0.1");
    v6.address = *SocketAddress::Parse("fd00::1");
    const std::string kind = name.substr(0, 2);
    candidates.push_back({kind == "v6" || kind == "ba" ? v6 : v4, std::nullopt});
    if (kind == "bo") candidates.back().other = v6;
    if (kind == "ba") candidates.back().other = v4;
  }
  return candidates;
}

const std::vector<FuseCandidate>& Five() {
  static const auto* five = new std::vector<FuseCandidate>(Interfaces({"eth0", "eth1", "eth2", "v6", "eth4"}));
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
      {"eth1+v6", "eth1 (10.0.0.1), v6 (fd00::1) have addresses of no common family: give each of them", none},
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

// The first addresses may be of different families, where another one is of the same.
TEST(FuseTest, AGroupGoesByAFamilyThatAllMembersHave) {
  const struct {
    std::vector<std::string> names;
    int family;
  } rows[] = {
      {{"eth1", "both1"}, AF_INET},
      {{"both1", "v6"}, AF_INET6},
      {{"eth1", "back1"}, AF_INET},
      {{"back1", "both1"}, AF_INET6},
      {{"both1", "back1"}, AF_INET},
      {{"back1", "both1", "eth1"}, AF_INET},
      {{"eth1", "v6"}, 0},
      {{"both1", "eth1", "v6"}, 0},
      {{"v6"}, AF_INET6},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.family, FamilyOfAll(Interfaces(row.names))) << testing::PrintToString(row.names);
    EXPECT_EQ(row.family == 0, !WhyNotFused(Interfaces(row.names)).empty()) << testing::PrintToString(row.names);
  }
  EXPECT_NE(std::string::npos,
            WhyNotFused(Interfaces({"both1", "eth1", "v6"})).find("both1 (10.0.0.1 and fd00::1), eth1"));
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
