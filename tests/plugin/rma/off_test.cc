// Without TCPX_RMA=1 there are no one-sided transfers, and nothing of them: no thread, no socket, no line at WARN.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "nccl/client/rma_client.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

void InitFailsQuietly(int version) {
  Rank rank;
  const auto client = Must(RmaClient::Open(kPluginPath, version));
  const std::vector<std::string> before = LogLines(NCCL_LOG_WARN);
  const int threads = ThreadCount();
  const std::vector<std::string> descriptors = OpenDescriptors();
  void* context = &rank;
  TCPX_REQUIRE(client->Init(&context, 42, &RecordLog) != ncclSuccess);
  TCPX_REQUIRE(context == nullptr);
  TCPX_REQUIRE(LogLines(NCCL_LOG_WARN) == before, LogText());
  TCPX_REQUIRE(ThreadCount() == threads);
  TCPX_REQUIRE(OpenDescriptors() == descriptors, Joined(OpenDescriptors()));
  // The net table goes on as ever.
  rank.Close(rank.ConnectToSelf());
  rank.Finalize();
}

TEST(RmaOffTest, InitFailsQuietlyByDefault) {
  for (int version : {14, 15, 16}) {
    EXPECT_EQ("", RunAlone([version] {
                Mode{.threads = 2, .lanes = 2}.Apply();
                unsetenv("TCPX_RMA");
                InitFailsQuietly(version);
              }));
  }
}

TEST(RmaOffTest, AndWithZero) {
  EXPECT_EQ("", RunAlone([] {
              Mode{.threads = 2, .lanes = 2, .environment = {{"TCPX_RMA", "0"}}}.Apply();
              InitFailsQuietly(0);
            }));
}

}  // namespace
}  // namespace tcpx
