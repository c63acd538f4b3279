// What becomes of the parameters towards this host and towards another.
#include "net_socket/nic/path_profile.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tcpx {
namespace {

Options With(const std::string& congestion, int sndbuf, int rcvbuf) {
  Options options;
  options.congestion = congestion;
  options.sndbuf = sndbuf;
  options.rcvbuf = rcvbuf;
  return options;
}

PathProfile Profile(const Options& options, bool same_host, LaneKind kind = LaneKind::kFirst) {
  PathFacts facts;
  facts.same_host = same_host;
  facts.kind = kind;
  return MakePathProfile(options, facts);
}

TEST(PathProfileTest, NothingIsBoundTowardsAnotherFamily) {
  PathFacts facts;
  facts.foreign = facts.fused = true;
  EXPECT_EQ(std::vector<LeaveBy>{LeaveBy::kRoute}, MakePathProfile(Options(), facts).ways);
}

// Where a tied socket would only ask the link for a host that is not on it.
TEST(PathProfileTest, AFusedDeviceIsTiedOnlyWhereItsInterfaceHasARoute) {
  PathFacts facts;
  facts.fused = true;
  EXPECT_EQ(LeaveBy::kDevice, MakePathProfile(Options(), facts).ways.front());
  facts.routed = false;
  EXPECT_EQ((std::vector<LeaveBy>{LeaveBy::kAddress, LeaveBy::kRoute}), MakePathProfile(Options(), facts).ways);
  facts.same_subnet = facts.nic_ties = true;
  EXPECT_EQ(LeaveBy::kDevice, MakePathProfile(Options(), facts).ways.front());
}

TEST(PathProfileTest, CongestionAndReceiveBuffer) {
  struct Row {
    Options options;
    bool same_host;
    const char* congestion;
    bool congestion_asked;
    int receive_buffer;
    bool receive_asked, bounds, raises_low_water;
  };
  const Row rows[] = {
      {With("", -1, -1), false, "", false, -1, false, false, false},
      {With("", -1, -1), true, "reno", false, kSameHostBytes, false, true, true},
      {With("cubic", -1, -1), false, "cubic", true, -1, false, false, false},
      {With("cubic", -1, -1), true, "cubic", true, kSameHostBytes, false, true, true},
      // What paces loses by a bound.
      {With("bbr", -1, -1), true, "bbr", true, -1, false, false, true},
      {With("bbr3", -1, -1), true, "bbr3", true, -1, false, false, true},
      {With("", -1, 50000), true, "reno", false, 50000, true, false, false},
      {With("", -1, 0), false, "", false, 0, true, false, false},
  };
  for (const Row& row : rows) {
    const std::string what = row.options.congestion + (row.same_host ? " here" : " there");
    const PathProfile profile = Profile(row.options, row.same_host);
    EXPECT_EQ(row.congestion, profile.congestion) << what;
    EXPECT_EQ(row.congestion_asked, profile.congestion_asked) << what;
    EXPECT_EQ(row.receive_buffer, profile.receive_buffer.bytes) << what;
    EXPECT_EQ(row.receive_asked, profile.receive_buffer.asked) << what;
    EXPECT_EQ(row.bounds, profile.bounds_receive_buffer) << what;
    EXPECT_EQ(row.raises_low_water, profile.raises_low_water) << what;
  }
}

TEST(PathProfileTest, OnlyTheUserBoundsSendBuffers) {
  for (int sndbuf : {-1, 0, 70000}) {
    const PathProfile profile = MakePathProfile(With("", sndbuf, -1), PathFacts());
    EXPECT_EQ(sndbuf, profile.send_buffer.bytes);
    EXPECT_EQ(sndbuf >= 0, profile.send_buffer.asked);
  }
}

TEST(PathProfileTest, WhatOnlyDependsOnThePath) {
  struct Row {
    bool same_host;
    LaneKind kind;
    std::optional<int> unsent_mark;
  };
  const Row rows[] = {
      {false, LaneKind::kFirst, std::nullopt},
      {false, LaneKind::kBulk, std::nullopt},
      {true, LaneKind::kFirst, std::nullopt},
      {true, LaneKind::kBulk, kBulkUnsentBytes},
  };
  for (const Row& row : rows) {
    const PathProfile profile = Profile(Options(), row.same_host, row.kind);
    EXPECT_EQ(row.unsent_mark, profile.unsent_mark);
    EXPECT_EQ(!row.same_host, profile.paced_by_rate);
    EXPECT_EQ(!row.same_host, profile.lanes_by_speed);
    EXPECT_EQ(!row.same_host, profile.pilots_lanes);
    EXPECT_EQ(row.same_host, profile.times_long_messages);
    EXPECT_EQ(row.same_host, profile.delays_acks);
    EXPECT_EQ(row.same_host, profile.pads_lone_frames);
  }
}

TEST(PathProfileTest, ANumberOfLanesStaysANumberAndAFusedDeviceKeepsItsPaths) {
  Options options;
  options.lanes = 4;
  EXPECT_FALSE(Profile(options, false, LaneKind::kFirst).pilots_lanes);
  PathFacts facts;
  facts.fused = true;
  EXPECT_FALSE(MakePathProfile(Options(), facts).pilots_lanes);
}

TEST(PathProfileTest, ASocketIsTiedWhereRoutesWouldNotChooseItsDevice) {
  using Ways = std::vector<LeaveBy>;
  const Ways tied = {LeaveBy::kDevice, LeaveBy::kAddress, LeaveBy::kRoute};
  const Ways untied = {LeaveBy::kAddress, LeaveBy::kRoute};
  struct Row {
    bool same_host, fused, same_subnet, nic_ties;
    Ways ways;
  };
  const Row rows[] = {
      {false, false, false, false, untied},
      {false, false, true, false, untied},
      {false, false, true, true, tied},
      // Its subnet may be shared: a router's packets come in by any.
      {false, false, false, true, untied},
      // Through a router each interface has its own route; in its own subnet it has one anyway.
      {false, true, false, false, tied},
      {false, true, true, false, untied},
      {false, true, true, true, tied},
      {true, true, true, true, untied},
      {true, false, false, false, untied},
  };
  for (const Row& row : rows) {
    PathFacts facts;
    facts.same_host = row.same_host;
    facts.fused = row.fused;
    facts.same_subnet = row.same_subnet;
    facts.nic_ties = row.nic_ties;
    EXPECT_EQ(row.ways, MakePathProfile(Options(), facts).ways)
        << row.same_host << row.fused << row.same_subnet << row.nic_ties;
  }
}

TEST(PathProfileTest, ZeroCopyIsTriedWhereTheKernelMayNotCopy) {
  struct Row {
    Switch parameter;
    bool same_host;
    Switch expected;
  };
  const Row rows[] = {
      {Switch::kAuto, false, Switch::kAuto}, {Switch::kAuto, true, Switch::kOff}, {Switch::kOn, false, Switch::kOn},
      {Switch::kOn, true, Switch::kOn},      {Switch::kOff, false, Switch::kOff}, {Switch::kOff, true, Switch::kOff},
  };
  for (const Row& row : rows) {
    Options options;
    options.zerocopy = row.parameter;
    EXPECT_EQ(row.expected, Profile(options, row.same_host).zero_copy);
  }
}

TEST(PathProfileTest, PacingAndMarksAreAsAskedFor) {
  Options options;
  options.pacing_mbps = 8;
  PathFacts facts;
  facts.traffic_class = 184;
  facts.family = 10;
  const PathProfile profile = MakePathProfile(options, facts);
  EXPECT_EQ(1000000u, profile.pacing);
  EXPECT_EQ(184, profile.traffic_class);
  EXPECT_EQ(10, profile.family);
  EXPECT_EQ(0u, Profile(Options(), true).pacing);
  EXPECT_EQ(kNoTrafficClass, Profile(Options(), true).traffic_class);
}

}  // namespace
}  // namespace tcpx
