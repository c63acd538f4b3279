// Checks of what no test may change on its machine: files of /proc, which a folder of the test replaces.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "net_socket/engine/engine.h"
#include "tests/plugin/lifetime/sandbox.h"
#include "tools/doctor/kept_lines.h"
#include "tools/doctor/local_checks.h"
#include "tools/doctor/releases.h"

namespace tcpx {
namespace doctor {
namespace {

class Checks : public testing::Test {
 protected:
  Checks() : patient_(std::make_unique<Patient>()) {
    KeepLog();
    patient_->root =
        absl::StrCat(testing::TempDir(), "/root-", testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  void Write(const std::string& path, const std::string& text) {
    const std::string whole = patient_->root + path;
    for (size_t at = whole.find('/', 1); at != std::string::npos; at = whole.find('/', at + 1)) {
      mkdir(whole.substr(0, at).c_str(), 0700);
    }
    std::ofstream(whole) << text;
  }

  // The one finding of that check that is not ok.
  const Finding* Wrong(const char* check) {
    const Finding* found = nullptr;
    for (const Finding& finding : report_.findings()) {
      if (finding.check == check && finding.grade != Grade::kOk) found = &finding;
    }
    return found;
  }

  std::unique_ptr<Patient> patient_;
  Report report_;
};

TEST_F(Checks, NcclsOwnEncryptionDoesNotServe) {
  CheckSecret(*patient_, &report_);
  EXPECT_TRUE(report_.Says("ncclSetEncryption"));
  EXPECT_EQ(report_.ExitCode(), 0);
}

TEST_F(Checks, EncryptionThatIsRequiredAndOffIsAProblem) {
  patient_->options.require_encryption = true;
  CheckSecret(*patient_, &report_);
  EXPECT_TRUE(report_.Says("TCPX_REQUIRE_ENCRYPTION is on, and TCPX_ENCRYPT is not"));
  EXPECT_EQ(report_.ExitCode(), 1);
}

TEST_F(Checks, EncryptionWithoutASecretIsAProblem) {
  patient_->options.encrypt = patient_->options.require_encryption = true;
  CheckSecret(*patient_, &report_);
  EXPECT_TRUE(report_.Says("TCPX_SECRET_FILE names no secret"));
  EXPECT_EQ(report_.ExitCode(), 1);
}

TEST_F(Checks, OneSidedTransfersAreNotAskedFor) {
  setenv("NCCL_CROSS_NIC", "0", 1);
  CheckOneSided(*patient_, &report_);
  EXPECT_TRUE(report_.findings().empty());
}

TEST_F(Checks, OneSidedTransfersNeedWindowsOfNccl) {
  patient_->options.rma = true;
  for (const char* name : {"NCCL_CROSS_NIC", "NCCL_CUMEM_ENABLE", "NCCL_WIN_ENABLE"}) {
    setenv(name, "1", 1);
    CheckOneSided(*patient_, &report_);
    EXPECT_EQ(report_.ExitCode(), 0) << name;
  }
  setenv("NCCL_WIN_ENABLE", "0", 1);
  CheckOneSided(*patient_, &report_);
  EXPECT_NE(report_.ExitCode(), 0);
  EXPECT_TRUE(report_.Says("with NCCL_WIN_ENABLE=0 NCCL has no windows between nodes"));
}

TEST_F(Checks, ConnectionsAreNotTracked) {
  CheckConntrack(*patient_, &report_);
  EXPECT_EQ(report_.ExitCode(), 0);
  EXPECT_TRUE(report_.Says("not tracked"));
}

TEST_F(Checks, TheTableOfConnectionsIsNearlyFull) {
  Write("/proc/sys/net/netfilter/nf_conntrack_max", "262144\n");
  Write("/proc/sys/net/netfilter/nf_conntrack_count", "250000\n");
  CheckConntrack(*patient_, &report_);
  ASSERT_NE(Wrong("conntrack"), nullptr);
  EXPECT_EQ(Wrong("conntrack")->grade, Grade::kProblem);
  EXPECT_TRUE(absl::StrContains(Wrong("conntrack")->fix, "nf_conntrack_max=524288"));
}

TEST_F(Checks, TheTableOfConnectionsIsSmall) {
  Write("/proc/sys/net/netfilter/nf_conntrack_max", "4096\n");
  Write("/proc/sys/net/netfilter/nf_conntrack_count", "5\n");
  CheckConntrack(*patient_, &report_);
  ASSERT_NE(Wrong("conntrack"), nullptr);
  EXPECT_EQ(Wrong("conntrack")->grade, Grade::kNote);
}

TEST_F(Checks, IdleConnectionsAreForgotten) {
  Write("/proc/sys/net/netfilter/nf_conntrack_max", "262144\n");
  Write("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "100\n");
  CheckConntrack(*patient_, &report_);
  ASSERT_NE(Wrong("conntrack"), nullptr);
  EXPECT_TRUE(absl::StrContains(Wrong("conntrack")->text, "forgotten after 100 s"));
}

TEST_F(Checks, BuffersDoNotGrow) {
  Write("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n");
  Write("/proc/sys/net/ipv4/tcp_moderate_rcvbuf", "0\n");
  CheckBuffers(*patient_, &report_);
  ASSERT_NE(Wrong("buffers"), nullptr);
  EXPECT_EQ(Wrong("buffers")->fix, "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1");
}

// The kernel's cause is read where its errno leaves several. In a process of its own: the filter is for good.
TEST_F(Checks, TheSysctlForbidsIoUring) {
  Write("/proc/sys/kernel/io_uring_disabled", "2\n");
  const auto forbidden = [this] {
    DenyIoUring(EPERM);
    CheckEngine(*patient_, &report_);
    const Finding* wrong = Wrong("engine");
    fputs(wrong == nullptr ? "nothing is wrong" : FindingText(*wrong).c_str(), stderr);
    _exit(0);
  };
  EXPECT_EXIT(forbidden(), testing::ExitedWithCode(0),
              "SKIPPED|note +engine .*sysctl kernel.io_uring_disabled is 2(.|\n)*fix: sysctl -w "
              "kernel.io_uring_disabled=0");
}

TEST_F(Checks, ASecurityModuleForbidsIoUring) {
  Write("/proc/self/status", "Name:\ta\nSeccomp:\t0\n");
  const auto forbidden = [this] {
    DenyIoUring(EPERM);
    CheckEngine(*patient_, &report_);
    const Finding* wrong = Wrong("engine");
    fputs(wrong == nullptr ? "nothing is wrong" : FindingText(*wrong).c_str(), stderr);
    _exit(0);
  };
  EXPECT_EXIT(forbidden(), testing::ExitedWithCode(0), "SKIPPED|note +engine .*security module forbids it");
}

TEST(Rung, IsTheFirstThatTheKernelTakes) {
  std::string reason;
  const bool usable = ProbeEngine(EngineChoice::kAuto, &reason) == EngineChoice::kIoUring;
  setenv(kTestUringRung, "0", 1);
  const int best = UringRung();
  if (usable) {
    EXPECT_GE(best, 0);
    setenv(kTestUringRung, "3", 1);
    EXPECT_EQ(UringRung(), 3);
  }
  setenv(kTestUringRung, "4", 1);
  EXPECT_EQ(UringRung(), -1);
  unsetenv(kTestUringRung);
}

TEST(Releases, TakeTheirNewestInterface) {
  EXPECT_EQ(NetVersionOf(2804), 0);
  EXPECT_EQ(NetVersionOf(21210), 0);
  EXPECT_EQ(NetVersionOf(21304), 6);
  EXPECT_EQ(NetVersionOf(21806), 6);
  EXPECT_EQ(NetVersionOf(21903), 7);
  EXPECT_EQ(NetVersionOf(22304), 8);
  EXPECT_EQ(NetVersionOf(22501), 9);
  EXPECT_EQ(NetVersionOf(22707), 10);
  EXPECT_EQ(NetVersionOf(22907), 11);
  EXPECT_EQ(NetVersionOf(23007), 12);
  EXPECT_EQ(NetVersionOf(23201), 12);
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx
