// What the environment says, read once.
#include "net_socket/plugin/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/build_info.h"
#include "common/log.h"
#include "nccl/plugin_api.h"

namespace tcpx {
namespace {

std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}

void Keep(LogLevel level, uint64_t, const char*, int, const char* text) {
  Lines().push_back((level == LogLevel::kWarn ? "WARN " : "INFO ") + std::string(text));
}

// What reading the settings says.
std::vector<std::string> Said() {
  Lines().clear();
  SetLogSink(&Keep);
  const Settings settings;
  SetLogSink(nullptr);
  return Lines();
}

class SettingsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"TCPX_TRAFFIC_CLASS", "TCPX_TRAFFIC_CLASS_MAP", "TCPX_SECRET_FILE", "TCPX_LANES",
                             "TCPX_SPIN", "TCPX_THREADS", "TCPX_ENCRYPT", "TCPX_ENCRYPT_CIPHER"}) {
      unsetenv(name);
    }
    SetLogSink(nullptr);
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

TEST_F(SettingsTest, OneLineSaysWhatIsInEffect) {
  setenv("TCPX_LANES", "3", 1);
  setenv("TCPX_TRAFFIC_CLASS", "ef", 1);
  const std::vector<std::string> lines = Said();
  ASSERT_EQ(1u, lines.size());
  EXPECT_TRUE(absl::StartsWith(lines[0], std::string("INFO NET/tcpx: version ") + kVersion)) << lines[0];
  EXPECT_TRUE(absl::StrContains(lines[0], ", build id " + BuildId() + "; ")) << lines[0];
  EXPECT_TRUE(absl::StrContains(lines[0], "; TCPX_LANES=3 TCPX_TRAFFIC_CLASS=ef")) << lines[0];
}

TEST_F(SettingsTest, WhatIsNotKnownOrNotValidIsAWarning) {
  setenv("TCPX_STALL", "3", 1);
  setenv("TCPX_THREADS", "all", 1);
  const std::vector<std::string> lines = Said();
  ASSERT_EQ(3u, lines.size());
  EXPECT_TRUE(absl::StartsWith(lines[0], "WARN NET/tcpx: TCPX_THREADS is \"all\"")) << lines[0];
  EXPECT_TRUE(absl::StartsWith(lines[1], "WARN NET/tcpx: TCPX_STALL is not known")) << lines[1];
  EXPECT_TRUE(absl::StrContains(lines[1], "TCPX_STALL_WARN")) << lines[1];
  EXPECT_TRUE(absl::StrContains(lines[2], "no TCPX_ variable is in effect")) << lines[2];
}

// Whoever sets it to anything but off means to encrypt.
TEST_F(SettingsTest, AMistypedSwitchOfEncryptionIsAnError) {
  for (const char* text : {"true", "yes", "2", "1 ", " on", ""}) {
    setenv("TCPX_ENCRYPT", text, 1);
    const Settings settings;
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, settings.secret_status().code()) << text;
    EXPECT_TRUE(absl::StrContains(settings.secret_status().message(),
                                  absl::StrCat("TCPX_ENCRYPT is \"", text, "\", which is not on (1) or off (0)")))
        << settings.secret_status();
    EXPECT_FALSE(settings.options().encrypt);
  }
  for (const char* text : {"0", "off"}) {
    setenv("TCPX_ENCRYPT", text, 1);
    EXPECT_TRUE(Settings().secret_status().ok()) << text;
  }
}

// Where NCCL may choose, it goes on with sockets of its own.
TEST_F(SettingsTest, WhatEndsTheLoadingSaysWhatKeepsNcclFromGoingOn) {
  setenv("TCPX_ENCRYPT", "1", 1);
  EXPECT_TRUE(absl::StrContains(Settings().secret_status().message(), "NCCL_NET=tcpx"));
  setenv("TCPX_ENCRYPT", "true", 1);
  EXPECT_TRUE(absl::StrContains(Settings().secret_status().message(), "NCCL_NET=tcpx"));
}

TEST_F(SettingsTest, OnlyWhoAsksNcclForEncryptionIsWarned) {
  struct Case {
    const char* name;
    const char* value;
    bool asks;
  };
  for (const Case& one : {Case{"NCCL_SOCKET_TLS", "1", true}, Case{"NCCL_ENCRYPTION", "psk", true},
                          Case{"NCCL_SOCKET_TLS", "off", false}, Case{"NCCL_SOCKET_TLS", "False", false},
                          Case{"NCCL_SOCKET_TLS", "no", false}, Case{"NCCL_SOCKET_TLS", "0", false},
                          Case{"NCCL_SOCKET_TLS", "", false}, Case{"NCCL_TLS_DISABLE", "1", false}}) {
    setenv(one.name, one.value, 1);
    const std::string said = absl::StrJoin(Said(), "\n");
    EXPECT_EQ(one.asks, absl::StrContains(said, absl::StrCat(one.name, " is set, which does not reach"))) << said;
    EXPECT_EQ(one.asks, absl::StrContains(said, "WARN")) << one.name << "=" << one.value;
    unsetenv(one.name);
  }
}

TEST_F(SettingsTest, ACipherAloneIsAWarning) {
  setenv("TCPX_ENCRYPT_CIPHER", "aes128-gcm", 1);
  const std::vector<std::string> lines = Said();
  ASSERT_EQ(2u, lines.size());
  EXPECT_TRUE(absl::StartsWith(lines[1], "WARN NET/tcpx: TCPX_ENCRYPT_CIPHER is set, and TCPX_ENCRYPT is not on"))
      << lines[1];
}

}  // namespace
}  // namespace tcpx
