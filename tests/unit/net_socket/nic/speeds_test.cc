// How TCPX_SPEED_MBPS is read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "net_socket/nic/device_params.h"

namespace tcpx {
namespace {

TEST(SpeedsTest, WhatATextSaysOfAnInterface) {
  struct Row {
    const char* spec;
    int speed_mbps;  // of eth0; 0: nothing is said
  };
  const Row rows[] = {
      {"", 0},
      {"100000", 100000},
      {"eth0=25000", 25000},
      {"eth1=25000", 0},
      {"eth1=25000,eth0=400000", 400000},
      // A name counts more than all.
      {"1000,eth0=400000", 400000},
      {"eth0=400000,1000", 400000},
      {"eth=1", 0},
      {"eth0=", 0},
      {"=5", 0},
      {"0", 0},
      {"-3", 0},
      {"fast", 0},
      {"eth0=fast,7", 7},
      {"100000001", 0},
      {"99999999999999", 0},
  };
  for (const Row& row : rows) {
    InterfaceHardware hardware;
    EXPECT_EQ(row.speed_mbps != 0, OverrideSpeed(row.spec, "eth0", &hardware)) << row.spec;
    EXPECT_EQ(row.speed_mbps != 0 ? row.speed_mbps : kDefaultSpeedMbps, hardware.speed_mbps) << row.spec;
    EXPECT_EQ(row.speed_mbps != 0, hardware.speed_source == SpeedSource::kParameter) << row.spec;
  }
}

TEST(SpeedsTest, WhatIsWrongIsSaid) {
  std::vector<Interface> chosen(1);
  chosen[0].name = "eth0";
  EXPECT_TRUE(CheckSpeeds("", chosen).empty());
  EXPECT_TRUE(CheckSpeeds("100000,eth0=5", chosen).empty());
  const std::vector<std::string> warnings = CheckSpeeds("eth0=fast,eth7=5,0", chosen);
  ASSERT_EQ(3u, warnings.size());
  EXPECT_NE(std::string::npos, warnings[0].find("'eth0=fast' is left out")) << warnings[0];
  EXPECT_NE(std::string::npos, warnings[1].find("eth7 is not among the interfaces in use")) << warnings[1];
  EXPECT_NE(std::string::npos, warnings[2].find("'0' is left out")) << warnings[2];
}

}  // namespace
}  // namespace tcpx
