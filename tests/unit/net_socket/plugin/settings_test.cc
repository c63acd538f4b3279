// What the environment says, read once.
#include "net_socket/plugin/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "nccl/plugin_api.h"

namespace tcpx {
namespace {

class SettingsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"TCPX_TRAFFIC_CLASS", "TCPX_TRAFFIC_CLASS_MAP", "TCPX_SECRET_FILE"}) unsetenv(name);
  }
};

TEST_F(SettingsTest, NothingIsSet) {
  const Settings settings;
  EXPECT_EQ(nullptr, settings.secret());
  EXPECT_TRUE(settings.secret_status().ok());
  EXPECT_EQ(kNoTrafficClass, *settings.TrafficClass(kNoTrafficClass));
  EXPECT_EQ(0x28, *settings.TrafficClass(0x28));
}

TEST_F(SettingsTest, TheProcesssTrafficClassIsForWhoeverAsksForNone) {
  setenv("TCPX_TRAFFIC_CLASS", "1", 1);
  setenv("TCPX_TRAFFIC_CLASS_MAP", "1:46,2:10", 1);
  const Settings settings;
  EXPECT_EQ(46 << 2, *settings.TrafficClass(kNoTrafficClass));
  EXPECT_EQ(10 << 2, *settings.TrafficClass(2));
}

TEST_F(SettingsTest, ASecretThatCannotBeReadIsAnError) {
  setenv("TCPX_SECRET_FILE", "/nonexistent/secret", 1);
  const Settings settings;
  EXPECT_EQ(nullptr, settings.secret());
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, settings.secret_status().code());
}

TEST_F(SettingsTest, ANamedClassIsNoIdOfTheMap) {
  setenv("TCPX_TRAFFIC_CLASS", "ef", 1);
  setenv("TCPX_TRAFFIC_CLASS_MAP", "184:cs1", 1);
  const Settings settings;
  EXPECT_EQ(46 << 2, *settings.TrafficClass(kNoTrafficClass));
  EXPECT_EQ(8 << 2, *settings.TrafficClass(184));
}

}  // namespace
}  // namespace tcpx
