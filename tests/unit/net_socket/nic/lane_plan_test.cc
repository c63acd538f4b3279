#include "net_socket/nic/lane_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "net_socket/nic/lane_budget.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

constexpr int64_t kPlenty = LaneBudget::kLanesMax;

SocketAddress Address(const std::string& text) { return *SocketAddress::Parse(text); }

Nic SomeNic(const std::string& address, int speed_mbps, int prefix_bits = 24) {
  Nic nic;
  nic.interface.address = Address(address);
  nic.interface.prefix_bits = prefix_bits;
  nic.hardware.speed_mbps = speed_mbps;
  return nic;
}

std::vector<Nic> NicsOfSpeed(const std::vector<int>& speeds) {
  std::vector<Nic> nics;
  for (int speed : speeds) nics.push_back(SomeNic(absl::StrCat("10.0.0.", 10 + nics.size()), speed));
  return nics;
}

std::vector<PeerNic> PeersOfSpeed(const std::vector<uint32_t>& speeds) {
  std::vector<PeerNic> peers;
  for (uint32_t speed : speeds) peers.push_back({Address(absl::StrCat("10.0.0.", 20 + peers.size(), ":80")), speed});
  return peers;
}

// "0-1" is a lane from our first interface to the peer's second.
std::string Pairs(const std::vector<Nic>& nics, const std::vector<PeerNic>& peers, int lanes) {
  std::string text;
  for (const LanePath& path : PlanLanes(nics, peers, lanes)) {
    const auto to = std::find_if(peers.begin(), peers.end(), [&](const PeerNic& p) { return p.address == path.peer; });
    absl::StrAppend(&text, text.empty() ? "" : " ", path.nic - nics.data(), "-", to - peers.begin());
  }
  return text;
}

// Which addresses of a handle are dialled, and in which order.
TEST(LanePlanTest, ChoosesAmongAddressesOfBothFamilies) {
  const std::string v4 = "10.0.0.1:80", v6 = "[fd00::1]:81";
  struct Row {
    std::string ours;  // families of the device, its first one first
    std::string first, other;
    std::string misleading;
    std::string dialled;
  };
  const Row rows[] = {
      {"4", v4, "", "", v4},
      {"4", v4, v6, "", v4},
      {"6", v4, v6, "", v6},
      {"46", v4, v6, "", v4 + " " + v6},
      {"46", v6, v4, "", v6 + " " + v4},
      {"64", v4, v6, "", v4 + " " + v6},
      {"46", v4, "", "", v4},
      // Nothing fits: the routes may know.
      {"6", v4, "", "", v4},
      // Docker's bridge and its like.
      {"46", v4, v6, v4, v6},
      {"46", v4, v6, v6, v4},
      {"4", v4, v6, v4, v4},
      {"46", v4, "", v4, v4},
  };
  for (const Row& row : rows) {
    Device device;
    for (char family : row.ours) {
      std::vector<Nic>& nics = device.nics.empty() ? device.nics : device.other_nics;
      nics.push_back(SomeNic(family == '4' ? "10.0.0.2" : "fd00::2", 10000));
    }
    Handle handle;
    handle.address = Address(row.first);
    handle.nics = 1;
    if (!row.other.empty()) {
      handle.other_address = Address(row.other);
      handle.other_nics = 2;
    }
    const auto misleading = [&](const SocketAddress& at) { return at.ToString() == row.misleading; };
    ChooseAddresses(device, misleading, &handle);
    std::string dialled = handle.address.ToString();
    if (handle.other_address.valid()) dialled += " " + handle.other_address.ToString();
    EXPECT_EQ(row.dialled, dialled) << row.ours << " to " << row.first << " and " << row.other;
    EXPECT_EQ(handle.address == Address(row.first) ? 1 : 2, handle.nics);
  }
}

TEST(LanePlanTest, AnInterfaceHasAddressesOfOneFamilyOrBoth) {
  Device device;
  device.nics.push_back(SomeNic("10.0.0.2", 10000));
  EXPECT_FALSE(device.HasFamily(AF_INET6));
  EXPECT_EQ(&device.nics, &device.NicsFor(AF_INET6));
  device.other_nics.push_back(SomeNic("fd00::2", 10000));
  EXPECT_TRUE(device.HasFamily(AF_INET) && device.HasFamily(AF_INET6));
  EXPECT_EQ(&device.nics, &device.NicsFor(AF_INET));
  EXPECT_EQ(&device.other_nics, &device.NicsFor(AF_INET6));
  const std::vector<PeerNic> all = {{Address("10.0.0.1:80"), 1}, {Address("[fd00::1]:80"), 2}};
  EXPECT_EQ(1u, OfFamily(all, AF_INET6).size());
  EXPECT_EQ(2u, OfFamily(all, AF_INET6)[0].speed_mbps);
}

TEST(LanePlanTest, LanesByParameterAndSpeed) {
  struct Row {
    int option;
    std::vector<int> speeds;
    int peer_nics;
    bool same_host;
    int expected;
  };
  const Row rows[] = {
      // What the user says goes.
      {1, {100000}, 1, false, 1},
      {5, {100000}, 1, true, 5},
      {64, {1000}, 1, false, 64},
      // On one host a lane per core is worth less than the switch between them.
      {0, {10000}, 1, true, 1},
      {0, {400000}, 1, true, 1},
      {0, {10000, 10000}, 2, true, 1},
      // Lane 0, and one bulk lane per 4 Gbit/s begun, one at the least and 24 at the most.
      {0, {0}, 1, false, 2},
      {0, {100}, 1, false, 2},
      {0, {4000}, 1, false, 2},
      {0, {4001}, 1, false, 3},
      {0, {10000}, 1, false, 4},
      {0, {25000}, 1, false, 8},
      {0, {40000}, 1, false, 11},
      {0, {80000}, 1, false, 21},
      {0, {100000}, 1, false, 25},
      {0, {400000}, 1, false, 25},
      // For each interface.
      {0, {10000, 10000}, 1, false, 7},
      {0, {10000, 40000}, 2, false, 14},
      {0, {100000, 100000}, 2, false, 49},
      {0, std::vector<int>(8, 400000), 8, false, 64},
      {0, std::vector<int>(8, 1000), 8, false, 9},
      // And at least one for each of either side.
      {1, {10000, 10000}, 1, false, 3},
      {2, {10000, 10000, 10000, 10000}, 1, false, 5},
      {7, {10000, 10000}, 4, false, 7},
      {1, {10000}, 2, false, 3},
      {0, {10000}, 4, false, 5},
      {0, {100000}, 4, false, 25},
  };
  for (const Row& row : rows) {
    Options options;
    options.lanes = row.option;
    PathFacts facts;
    facts.same_host = row.same_host;
    const LaneCount count =
        LanesFor(options, MakePathProfile(options, facts), NicsOfSpeed(row.speeds), row.peer_nics, kPlenty);
    EXPECT_FALSE(count.shared);
    EXPECT_EQ(row.expected, count.lanes) << row.option << ", " << row.speeds.size() << " of " << row.speeds[0] << " to "
                                         << row.peer_nics;
  }
}

TEST(LanePlanTest, LanesWhereSpeedsSayLittle) {
  struct Row {
    SpeedSource source;
    int vendor, speed_mbps, lanes;
  };
  const Row rows[] = {
      {SpeedSource::kKernel, 0, 10000, 4},        {SpeedSource::kAssumed, 0, 10000, 5},
      {SpeedSource::kVirtual, 0, 10000, 5},       {SpeedSource::kVirtual, 0, 80000, 21},
      {SpeedSource::kParameter, 0, 10000, 4},     {SpeedSource::kParameter, 0, 100000, 25},
      {SpeedSource::kAssumed, 0x1d0f, 10000, 17}, {SpeedSource::kKernel, 0x1d0f, 100000, 25},
      {SpeedSource::kKernel, 0x1ae0, 10000, 5},   {SpeedSource::kKernel, 0x1ae0, 100000, 25},
      {SpeedSource::kKernel, 0x15b3, 10000, 4},   {SpeedSource::kParameter, 0, 100000000, 25},
  };
  for (const Row& row : rows) {
    Nic nic = SomeNic("10.0.0.1", row.speed_mbps);
    nic.hardware.speed_source = row.source;
    nic.hardware.vendor = row.vendor;
    const Options options;
    EXPECT_EQ(row.lanes, LanesFor(options, MakePathProfile(options, PathFacts()), {nic}, 1, kPlenty).lanes)
        << static_cast<int>(row.source) << ", " << row.vendor << ", " << row.speed_mbps;
  }
}

TEST(LanePlanTest, WhereFewLanesAreLeftNoParameterGivesMany) {
  struct Row {
    int option;
    std::vector<int> speeds;
    int peer_nics;
    bool same_host;
    int64_t left;
    int expected;
    bool shared;
  };
  const Row rows[] = {
      {0, {100000}, 1, false, 3072, 25, false},
      {0, {100000}, 1, false, 512, 5, true},
      {0, {100000}, 1, false, -9, 2, true},
      {0, {4000}, 1, false, -9, 2, false},
      // A bulk lane for each interface of either side.
      {0, {100000}, 6, false, 0, 7, true},
      {0, {100000, 100000}, 1, false, 0, 3, true},
      // What the user says goes, and the same host has one all the same.
      {9, {100000}, 1, false, 0, 9, false},
      {0, {100000}, 1, true, 0, 1, false},
  };
  for (const Row& row : rows) {
    Options options;
    options.lanes = row.option;
    PathFacts facts;
    facts.same_host = row.same_host;
    const LaneCount count =
        LanesFor(options, MakePathProfile(options, facts), NicsOfSpeed(row.speeds), row.peer_nics, row.left);
    EXPECT_EQ(row.expected, count.lanes) << row.left << " left, to " << row.peer_nics;
    EXPECT_EQ(row.shared, count.shared) << row.left << " left, to " << row.peer_nics;
  }
}

TEST(LanePlanTest, WhoGoesWhere) {
  struct Row {
    std::vector<int> speeds;
    std::vector<uint32_t> peer_speeds;
    int lanes;
    const char* expected;
  };
  const Row rows[] = {
      {{10}, {0}, 3, "0-0 0-0 0-0"},
      {{10, 10}, {10, 10}, 4, "0-0 1-1 0-0 1-1"},
      {{10, 10, 10, 10}, {10, 10, 10, 10}, 4, "0-0 1-1 2-2 3-3"},
      // By speed, and with the peer's like.
      {{10, 40}, {10, 40}, 5, "0-0 1-1 1-1 1-1 1-1"},
      {{40, 10}, {40, 10}, 5, "0-0 1-1 0-0 0-0 0-0"},
      // Another number of interfaces.
      {{10}, {10, 10}, 2, "0-0 0-1"},
      {{10}, {40, 10}, 5, "0-0 0-1 0-0 0-0 0-0"},
      {{10, 10}, {10}, 2, "0-0 1-0"},
      {{10, 10}, {10, 10, 10, 10}, 4, "0-0 1-1 0-2 1-3"},
      {{10, 10, 10, 10}, {10, 10}, 4, "0-0 1-1 2-0 3-1"},
      {{10, 10, 10}, {10, 10}, 6, "0-0 1-1 2-0 0-1 1-0 2-1"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.expected, Pairs(NicsOfSpeed(row.speeds), PeersOfSpeed(row.peer_speeds), row.lanes));
  }
}

TEST(LanePlanTest, SubnetsDecideWhoCanReachWhom) {
  const std::vector<Nic> nics = {SomeNic("10.0.1.1", 10), SomeNic("10.0.2.1", 10)};
  const PeerNic one = {Address("10.0.1.2:80"), 10}, two = {Address("10.0.2.2:81"), 10};
  const PeerNic far = {Address("10.9.0.1:82"), 10};
  EXPECT_EQ("0-0 1-1 0-0 1-1", Pairs(nics, {one, two}, 4));
  EXPECT_EQ("0-1 1-0 0-1 1-0", Pairs(nics, {two, one}, 4));
  // The peer is not in the subnet of one interface: a router makes what it can.
  EXPECT_EQ("0-0 1-0", Pairs(nics, {one}, 2));
  EXPECT_EQ("0-0 1-1", Pairs(nics, {far, two}, 2));
  EXPECT_EQ("0-1 1-0", Pairs(nics, {far, one}, 2));
  EXPECT_EQ(&nics[0], &NicTowards(nics, one.address));
  EXPECT_EQ(&nics[1], &NicTowards(nics, two.address));
  EXPECT_EQ(&nics[0], &NicTowards(nics, far.address));
}

// Every link-local address lies in the same subnet, whatever cable it belongs to: first to first, second to second.
TEST(LanePlanTest, LinkLocalAddressesAreJoinedInOrder) {
  std::vector<Nic> nics;
  std::vector<PeerNic> peers;
  for (int i = 1; i <= 8; ++i) {
    nics.push_back(SomeNic(absl::StrCat("fe80::", i), 10000, 64));
    peers.push_back({Address(absl::StrCat("[fe80::1:", i, "]:80")), 10000});
  }
  EXPECT_EQ("0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7 0-0", Pairs(nics, peers, 9));
}

TEST(LanePlanTest, EveryInterfaceGetsALaneAndLanesFollowSpeeds) {
  Rng random(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> speeds(random.Between(1, 8));
    std::vector<uint32_t> peer_speeds(random.Between(1, 8));
    for (int& speed : speeds) speed = static_cast<int>(random.Between(1, 400000));
    for (uint32_t& speed : peer_speeds) speed = static_cast<uint32_t>(random.Next());  // A liar may say anything.
    const std::vector<Nic> nics = NicsOfSpeed(speeds);
    const std::vector<PeerNic> peers = PeersOfSpeed(peer_speeds);
    const int lanes = static_cast<int>(random.Between(std::max(nics.size(), peers.size()), 63));
    std::vector<int> from(nics.size()), to(peers.size());
    for (const LanePath& path : PlanLanes(nics, peers, lanes)) {
      ++from[static_cast<size_t>(path.nic - nics.data())];
      for (size_t i = 0; i < peers.size(); ++i) to[i] += peers[i].address == path.peer ? 1 : 0;
    }
    for (int count : from) EXPECT_LE(1, count);
    for (int count : to) EXPECT_LE(1, count);
    for (size_t i = 0; i < nics.size(); ++i) {
      for (size_t k = 0; k < nics.size(); ++k) {
        if (from[i] == 1) continue;
        // No lane would be better with another one.
        EXPECT_GE(speeds[i] * int64_t{from[k] + 1}, speeds[k] * int64_t{from[i]});
      }
    }
  }
}

TEST(LanePlanTest, AddressesOfNoHonestPeer) {
  const SocketAddress dialled = Address("10.0.0.1:80");
  const auto check = [&](const char* address) { return CheckPeerNics(dialled, {{dialled, 1}, {Address(address), 1}}); };
  EXPECT_TRUE(CheckPeerNics(dialled, {}).ok());
  EXPECT_TRUE(check("10.0.1.1:81").ok());
  EXPECT_TRUE(CheckPeerNics(Address("127.0.0.1:80"), {{Address("127.0.0.1:81"), 1}}).ok());
  for (const char* address : {"[fd00::1]:80", "0.0.0.0:80", "127.0.0.1:80"}) {
    EXPECT_EQ(absl::StatusCode::kUnavailable, check(address).code()) << address;
    EXPECT_NE(std::string::npos, check(address).message().find(address)) << address;
  }
}

}  // namespace
}  // namespace tcpx
