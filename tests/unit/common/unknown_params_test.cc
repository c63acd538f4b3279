// Names that are almost a parameter's.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/params.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

std::vector<std::string> Warnings(std::vector<std::string> environment) {
  std::vector<const char*> pointers;
  for (const std::string& entry : environment) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  return UnknownParameters(pointers.data());
}

TEST(UnknownParamsTest, EachIsReportedWithTheNearest) {
  const struct {
    const char* name;
    const char* nearest;
  } cases[] = {
      {"TCPX_STALL", "TCPX_STALL_WARN"},
      {"TCPX_PORT", "TCPX_PORT_RANGE"},
      {"TCPX_LANE", "TCPX_LANES"},
      {"TCPX_NTHREADS", "TCPX_THREADS"},
      {"TCPX_PORTRANGE", "TCPX_PORT_RANGE"},
      {"TCPX_LANES ", "TCPX_LANES"},
      {"TCPX_CPU", "TCPX_CPUS"},
      {"TCPX_ZERO_COPY", "TCPX_ZEROCOPY"},
      {"TCPX_ENGIEN", "TCPX_ENGINE"},
      {"TCPX_SECRETS_FILE", "TCPX_SECRET_FILE"},
      {"TCPX_TRAFIC_CLASS", "TCPX_TRAFFIC_CLASS"},
      {"tcpx_lanes", "TCPX_LANES"},
  };
  for (const auto& one : cases) {
    const std::vector<std::string> warnings = Warnings({absl::StrCat(one.name, "=value")});
    ASSERT_EQ(warnings.size(), 1u) << one.name;
    EXPECT_TRUE(absl::StartsWith(warnings[0], absl::StrCat(one.name, " "))) << warnings[0];
    EXPECT_TRUE(absl::StrContains(warnings[0], absl::StrCat("nearest name is ", one.nearest, " "))) << warnings[0];
    EXPECT_FALSE(absl::StrContains(warnings[0], "value")) << "a value may be a secret: " << warnings[0];
  }
}

TEST(UnknownParamsTest, NoneIsNamedWhereNoneIsNear) {
  for (const char* name : {"TCPX_", "TCPX_QQQQQQQQQQ"}) {
    const std::vector<std::string> warnings = Warnings({absl::StrCat(name, "=value")});
    ASSERT_EQ(warnings.size(), 1u) << name;
    EXPECT_FALSE(absl::StrContains(warnings[0], "nearest")) << warnings[0];
  }
}

TEST(UnknownParamsTest, WhatIsKnownOrNotOursIsSilent) {
  std::vector<std::string> environment = {"PATH=/bin", "NCCL_NET=tcpx", "XTCPX_LANE=1", "TCPX_TEST_SEED=7", "odd"};
  for (const Parameter& parameter : Parameters()) environment.push_back(absl::StrCat(parameter.name, "=1"));
  EXPECT_EQ(Warnings(environment), std::vector<std::string>());
  EXPECT_EQ(UnknownParameters(nullptr), std::vector<std::string>());
}

// It makes a job slower, and nothing else would say why.
TEST(UnknownParamsTest, WhatIsForTestsIsReportedWhereItHasAnEffect) {
  const std::vector<std::string> warnings =
      Warnings({"TCPX_TEST_URING_RUNG=4", "TCPX_TEST_LONG=1", "TCPX_TEST_SHUFFLE_LANES=1"});
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(absl::StartsWith(warnings[0], "TCPX_TEST_SHUFFLE_LANES is in effect")) << warnings[0];
  EXPECT_TRUE(absl::StartsWith(warnings[1], "TCPX_TEST_URING_RUNG is in effect")) << warnings[1];
}

TEST(UnknownParamsTest, OneThatWasRemovedSaysSo) {
  const struct {
    const char* name;
    const char* advice;
  } cases[] = {
      {"TCPX_GATHER_BYTES", "unset it"},
      {"TCPX_GPU_SLOT_BYTES", "TCPX_GPU_POOL_BYTES"},
      {"TCPX_OPTIONAL_RECV_COMPLETION", "NCCL_NET_OPTIONAL_RECV_COMPLETION=0"},
      {"TCPX_SPIN_US", "TCPX_THREADS=0"},
      {"TCPX_THREADS_MAX", "TCPX_THREADS"},
      {"TCPX_TRACE_BYTES", "TCPX_TRACE_SAMPLE"},
  };
  for (const auto& one : cases) {
    const std::vector<std::string> warnings = Warnings({absl::StrCat(one.name, "=1")});
    ASSERT_EQ(warnings.size(), 1u) << one.name;
    EXPECT_TRUE(absl::StartsWith(warnings[0], absl::StrCat(one.name, " was removed and has no effect: ")))
        << warnings[0];
    EXPECT_TRUE(absl::StrContains(warnings[0], one.advice)) << warnings[0];
    EXPECT_FALSE(absl::StrContains(warnings[0], "nearest")) << warnings[0];
    EXPECT_TRUE(IsRemovedParameter(one.name));
  }
  EXPECT_FALSE(IsRemovedParameter("TCPX_LANES"));
}

TEST(UnknownParamsTest, OneThatWasMeantToProtectIsFound) {
  const auto misspelt = [](std::string entry) {
    const char* const environment[] = {"TCPX_LANES=1", entry.c_str(), nullptr};
    return MisspeltSecurity(environment);
  };
  for (const char* name : {"TCPX_ENCRYPTION",
                           "tcpx_encrypt",
                           "TCPX_ENCRPYT",
                           "TCPX_SECRET",
                           "TCPXSECRETFILE",
                           "TCPX_ENRYPTION",
                           "TCPX_ENCYRPTION",
                           "TCPX_SECERTFILE",
                           "TPCX_ENCRYPT",
                           "TCXP_ENCRYPT",
                           "TCP_SECRET_FILE",
                           "NCCL_TCPX_ENCRYPT",
                           "NCCL_NET_TCPX_SECRET_FILE",
                           "TCPX_CIPHER",
                           "TCPX_TLS",
                           "TCPX_PSK_FILE",
                           "TCPX_CRYPTO",
                           "export TCPX_REQUIRE_ENCRYPTION",
                           " TCPX_ENCRYPT",
                           "TCPX_ENCRYPT "}) {
    const std::string found = misspelt(absl::StrCat(name, "=value"));
    EXPECT_TRUE(absl::StartsWith(found, absl::StrCat(name, " is no parameter, and no connection is made"))) << found;
    EXPECT_FALSE(absl::StrContains(found, "value")) << found;
    EXPECT_EQ(Warnings({absl::StrCat(name, "=value")}), std::vector<std::string>{found});
  }
  for (const char* name :
       {"TCPX_ENCRYPT", "TCPX_ENGIEN", "TCPX_S", "TCPX_TEST_SECRET", "ENCRYPT", "NCCL_ENCRYPT", "GCP_SECRET_FILE",
        "GCP_ENCRYPT", "MY_SECRET_FILE", "NCCL_TCPX_TX_BINDINGS", "TCPX_TLSX", "EXPORT_SECRET", "TCPX_TLS_SERVICE_HOST",
        "MY_TCPX_ENCRYPTED_PORT_80_TCP_ADDR", "BASH_FUNC_tcpx_encrypt%%"}) {
    EXPECT_EQ(misspelt(absl::StrCat(name, "=1")), "") << name;
  }
  EXPECT_EQ(MisspeltSecurity(nullptr), "");
  // What no terminal shows is shown, and the right name said.
  const std::string marked = misspelt("\xEF\xBB\xBF\tTCPX_ENCRYPT=1");
  EXPECT_TRUE(absl::StartsWith(marked, "\\xef\\xbb\\xbf\\tTCPX_ENCRYPT is no parameter")) << marked;
  EXPECT_TRUE(absl::StrContains(marked, "the nearest name is TCPX_ENCRYPT ")) << marked;
}

TEST(UnknownParamsTest, ComeByName) {
  const std::vector<std::string> warnings = Warnings({"TCPX_B=", "TCPX_A", "TCPX_LANES=4"});
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(absl::StartsWith(warnings[0], "TCPX_A ")) << warnings[0];
  EXPECT_TRUE(absl::StartsWith(warnings[1], "TCPX_B ")) << warnings[1];
}

TEST(NearestParameter, IsOneWithThePrefix) {
  EXPECT_EQ(NearestParameter("NCCL_SOCKET_IFNMAE", "NCCL_"), "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(NearestParameter("NCCL_SOCKET_RCVBUFF", "NCCL_"), "NCCL_SOCKET_RCVBUF");
  EXPECT_EQ(NearestParameter("tcpx_lane", "TCPX_"), "TCPX_LANES");
  EXPECT_EQ(NearestParameter("ZZZZZZZZ", "TCPX_"), "");
}

}  // namespace
}  // namespace tcpx
