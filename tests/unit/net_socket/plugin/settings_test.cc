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
#include "tests/support/secret_file.h"

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
    for (const char* name :
         {"TCPX_TRAFFIC_CLASS", "TCPX_TRAFFIC_CLASS_MAP", "TCPX_SECRET_FILE", "TCPX_LANES", "TCPX_SPIN", "TCPX_THREADS",
          "TCPX_ENCRYPT", "TCPX_ENCRYPT_CIPHER", "TCPX_REQUIRE_ENCRYPTION"}) {
      unsetenv(name);
    }
    SetLogSink(nullptr);
  }
};

TEST_F(SettingsTest, NothingIsSet) {
  const Settings settings;
  EXPECT_EQ(nullptr, settings.secret());
  EXPECT_TRUE(settings.security().ok());
  EXPECT_EQ(kNoTrafficClass, *settings.TrafficClass(kNoTrafficClass));
  EXPECT_EQ(0x28, *settings.TrafficClass(0x28));
}

TEST_F(SettingsTest, TheProcesssTrafficClassIsForCommunicatorsWithoutOne) {
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
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, settings.security().code());
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

// A user who sets it to anything but off means to encrypt.
TEST_F(SettingsTest, AMistypedSwitchOfEncryptionIsAnError) {
  for (const char* text : {"y", "enabled", "2", "1 ", " on", ""}) {
    setenv("TCPX_ENCRYPT", text, 1);
    const Settings settings;
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, settings.security().code()) << text;
    EXPECT_TRUE(absl::StrContains(settings.security().message(),
                                  absl::StrCat("TCPX_ENCRYPT is \"", text, "\", which is not on (1) or off (0)")))
        << settings.security();
    EXPECT_FALSE(settings.options().encrypt);
  }
  for (const char* text : {"0", "off"}) {
    setenv("TCPX_ENCRYPT", text, 1);
    EXPECT_TRUE(Settings().security().ok()) << text;
  }
}

// An unclear value is taken for the wish to be safe.
TEST_F(SettingsTest, WhatWasMeantToProtectAndDoesNotIsAnError) {
  struct Case {
    const char* name;
    const char* value;
    const char* told;
  };
  for (const Case& one : {
           Case{"TCPX_ENCRYPTION", "1", "TCPX_ENCRYPTION is no parameter"},
           Case{"TCPX_ENCRYPTION", "0", "TCPX_ENCRYPTION is no parameter"},
           Case{"tcpx_encrypt", "1", "nearest name is TCPX_ENCRYPT "},
           Case{"Tcpx_Secret_File", "/x", "nearest name is TCPX_SECRET_FILE "},
           Case{"TCPX_SECRETFILE", "/x", "nearest name is TCPX_SECRET_FILE "},
           Case{"TCPX_ENCYRPT", "1", "nearest name is TCPX_ENCRYPT "},
           Case{"TCPX_SECERT_FILE", "/x", "nearest name is TCPX_SECRET_FILE "},
           Case{"TCPXENCRYPT", "1", "nearest name is TCPX_ENCRYPT "},
           Case{"TCPX_MY_SECRET", "x", "TCPX_MY_SECRET is no parameter"},
           Case{"TCPX_SECRET_FILE", "", "TCPX_SECRET_FILE is set, and empty"},
           Case{"TCPX_ENCRYPT", "1", "TCPX_ENCRYPT=1 needs a secret"},
           Case{"TCPX_ENCRYPT_CIPHER", "aes128-gcm", "TCPX_ENCRYPT is not on"},
           Case{"TCPX_REQUIRE_ENCRYPTION", "1", "TCPX_REQUIRE_ENCRYPTION is on, and TCPX_ENCRYPT is not"},
           Case{"TCPX_REQUIRE_ENCRYPTION", "y", "TCPX_REQUIRE_ENCRYPTION is \"y\", which is not on (1) or off (0)"},
           Case{"TCPX_REQUIRE_ENCRYPTION", "", "TCPX_REQUIRE_ENCRYPTION is \"\", which is not on (1) or off (0)"},
       }) {
    setenv(one.name, one.value, 1);
    const Settings settings;
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, settings.security().code()) << one.name;
    EXPECT_TRUE(absl::StrContains(settings.security().message(), one.told)) << settings.security();
    unsetenv(one.name);
  }
  EXPECT_TRUE(Settings().security().ok());
  setenv("TCPX_ENCRYPT_CIPHER", "", 1);
  EXPECT_TRUE(Settings().security().ok()) << "empty is the best";
}

TEST_F(SettingsTest, RequiredEncryptionIsHadWithASecret) {
  setenv("TCPX_REQUIRE_ENCRYPTION", "1", 1);
  setenv("TCPX_SECRET_FILE", SecretFile().c_str(), 1);
  EXPECT_FALSE(Settings().security().ok());  // A secret alone sends in the clear.
  setenv("TCPX_ENCRYPT", "1", 1);
  EXPECT_TRUE(Settings().security().ok()) << Settings().security();
}

TEST_F(SettingsTest, OtherUnknownNamesDoNotEndAJob) {
  setenv("TCPX_ENGIEN", "epoll", 1);
  EXPECT_TRUE(Settings().security().ok());
  unsetenv("TCPX_ENGIEN");
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

}  // namespace
}  // namespace tcpx
