// What a job of so many hosts takes of each.
#include "tools/doctor/plan.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/support/json.h"

namespace tcpx {
namespace doctor {
namespace {

PlanJob Job(int hosts, int ranks, int channels, Pattern pattern) {
  PlanJob job;
  job.hosts = hosts;
  job.ranks = ranks;
  job.channels = channels;
  job.pattern = pattern;
  return job;
}

PlanHost HostWithLanes(int lanes) {
  PlanHost host;
  host.options.lanes = lanes;
  return host;
}

const PlanLimit& LimitOf(const Plan& plan, const std::string& name) {
  for (const PlanLimit& limit : plan.limits) {
    if (limit.name == name) return limit;
  }
  ADD_FAILURE() << "no " << name;
  return plan.limits[0];
}

TEST(Plan, ARingEntersAndLeavesAHostOnceForEachChannel) {
  const Plan plan = MakePlan(Job(100, 8, 16, Pattern::kRing), HostWithLanes(9));
  EXPECT_EQ(plan.connections, 16);
  EXPECT_EQ(plan.lanes, 16 * 9);
  EXPECT_EQ(plan.health, 8 * 2);
  EXPECT_EQ(plan.listening, 8);
  EXPECT_EQ(plan.sockets, 2 * 16 * 9 + 8 * 2 + 8);
  EXPECT_EQ(plan.lanes_to_a_peer, 2 * 9);
  EXPECT_EQ(plan.ports_to_a_peer, 2 * 9 + 1);
}

TEST(Plan, ARingHasTheSameSizeWithMoreHosts) {
  EXPECT_EQ(MakePlan(Job(2, 8, 16, Pattern::kRing), PlanHost()).sockets,
            MakePlan(Job(2000, 8, 16, Pattern::kRing), PlanHost()).sockets);
}

TEST(Plan, RanksTakeChannelsInTurn) {
  const Plan plan = MakePlan(Job(2, 4, 6, Pattern::kRing), HostWithLanes(1));
  EXPECT_EQ(plan.connections, 6);
  EXPECT_EQ(plan.lanes_to_a_peer, 2);
  EXPECT_EQ(plan.health, 4 * 2);
  EXPECT_EQ(MakePlan(Job(2, 8, 3, Pattern::kRing), HostWithLanes(1)).listening, 3);
}

TEST(Plan, AllToAllGrowsWithHosts) {
  const Plan plan = MakePlan(Job(5, 2, 3, Pattern::kAllToAll), HostWithLanes(2));
  EXPECT_EQ(plan.connections, 2 * 8 * 3);
  EXPECT_EQ(plan.health, 2 * 2 * 8);
  EXPECT_EQ(plan.ports_to_a_peer, 2 * (3 * 2 + 1));
  EXPECT_EQ(plan.backlog, 8 * 3 * 2);
}

TEST(Plan, LanesAreSharedWhereThereAreThousands) {
  PlanHost host;
  host.descriptors = 4096;
  host.nics[0].hardware.speed_mbps = 100000;
  const Plan plan = MakePlan(Job(100, 8, 2, Pattern::kAllToAll), host);
  EXPECT_LT(plan.lanes_least, plan.lanes_most);
  EXPECT_LT(plan.lanes, plan.connections * plan.lanes_most);
}

TEST(Plan, OneProcessIsDialledWithSoManyLanesAtOnce) {
  EXPECT_EQ(MakePlan(Job(2, 1, 10000, Pattern::kRing), HostWithLanes(1)).backlog, 512);
}

// As bench/netns/scale.sh saw it: 1,000 sockets and a health socket at a host, idle, had 4,024 packets in a minute.
TEST(Plan, CountsTheKeepalivePacketsOfAnIdleHost) {
  const Plan plan = MakePlan(Job(2, 1, 1000, Pattern::kRing), HostWithLanes(1));
  EXPECT_NEAR(plan.keepalive_packets / 2 * 60, 4024, 1);
}

TEST(Plan, SaysWhichLimitIsFirst) {
  PlanHost host = HostWithLanes(1);
  host.descriptors = 1 << 20;
  host.somaxconn = 4096;
  host.ports = 28232;
  host.tcp_bytes = int64_t{1} << 40;
  host.flows = 262144;
  const PlanJob job = Job(2, 1, 30000, Pattern::kRing);
  const Plan plan = MakePlan(job, host);
  EXPECT_EQ(plan.limits[0].name, "ip_local_port_range");
  EXPECT_GT(plan.limits[0].share(), 1);
  Report report;
  ReportPlan(job, plan, &report);
  EXPECT_EQ(report.ExitCode(), 1);
  EXPECT_TRUE(report.Says("ip_local_port_range, which is reached first: 30001 "));
  EXPECT_TRUE(absl::StrContains(ReportText(report, true), "fix: sysctl -w net.ipv4.ip_local_port_range='1024 65535'"));
}

TEST(Plan, WhatHelpsIsEnough) {
  PlanHost host = HostWithLanes(1);
  host.descriptors = 20000;
  const PlanLimit files = LimitOf(MakePlan(Job(2, 1, 10000, Pattern::kRing), host), "nofile");
  EXPECT_GT(files.share(), 1);
  EXPECT_EQ(files.fix, "ulimit -Hn 32768 (LimitNOFILE=32768)");
  host.descriptors = 32768;
  EXPECT_LE(LimitOf(MakePlan(Job(2, 1, 10000, Pattern::kRing), host), "nofile").share(), 1);
}

TEST(Plan, MorePortsThanThereAreNeedFewerLanes) {
  PlanHost host = HostWithLanes(1);
  host.ports = 64512;
  const Plan plan = MakePlan(Job(2, 1, 65536, Pattern::kRing), host);
  EXPECT_TRUE(absl::StrContains(LimitOf(plan, "ip_local_port_range").fix, "fewer lanes"));
}

TEST(Plan, AnUnknownLimitIsNoProblem) {
  const PlanJob job = Job(65536, 256, 64, Pattern::kAllToAll);
  Report report;
  ReportPlan(job, MakePlan(job, PlanHost()), &report);
  EXPECT_EQ(report.ExitCode(), 0);
}

// About as many connections as command.cc accepts, with the most lanes.
TEST(Plan, TheLargestJobHasNoNegativeFigure) {
  PlanHost host = HostWithLanes(64);
  host.descriptors = 1 << 30;
  host.nics[0].hardware.speed_mbps = 1000000;
  host.rtt_us = 10000000;
  for (const Pattern pattern : {Pattern::kRing, Pattern::kAllToAll}) {
    const Plan plan = MakePlan(Job(15259, 256, pattern == Pattern::kRing ? 65536 : 1, pattern), host);
    EXPECT_GE(plan.connections, 65536);
    EXPECT_GE(plan.lanes, plan.connections);
    EXPECT_GE(plan.sockets, 2 * plan.lanes);
    EXPECT_GE(plan.kernel_bytes, plan.sockets);
    EXPECT_GE(plan.plugin_bytes, plan.connections);
    EXPECT_GE(plan.buffer_bytes, plan.lanes);
    for (const PlanLimit& limit : plan.limits) EXPECT_GT(limit.needed, 0) << limit.name;
  }
}

TEST(Plan, IsJson) {
  const PlanJob job = Job(64, 8, 2, Pattern::kAllToAll);
  Json json;
  std::string error;
  ASSERT_TRUE(ParseJson("{" + PlanJson(job, MakePlan(job, PlanHost())) + "}", &json, &error)) << error;
  EXPECT_EQ(json["plan"]["connections"].number, 8064);
  EXPECT_EQ(json["plan"]["limits"].size(), 5U);
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx
