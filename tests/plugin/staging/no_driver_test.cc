// Staging is asked for where there is no CUDA driver: one WARN, and host memory only.
#include <gtest/gtest.h>

#include <algorithm>

#include "net_socket/gpu/gpu_driver.h"
#include "tests/support/plugin_log.h"
#include "tests/support/test_plugin.h"

namespace tcpx {
namespace {

TEST(NoDriverTest, OneLineAndHostMemoryOnly) {
  if (GpuDriver::Load().ok()) GTEST_SKIP() << "this machine has a CUDA driver and a GPU";
  Mode settings;
  settings.environment["TCPX_GPU_DIRECT_STAGING"] = "1";
  auto plugin = TestPlugin::Open(settings);
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  ncclNetProperties_v12_t properties = {};
  ASSERT_EQ(ncclSuccess, (*plugin)->net().GetProperties(0, &properties));
  EXPECT_EQ(NCCL_PTR_HOST, properties.ptrSupport);
  EXPECT_EQ(1, properties.maxRecvs);
  const std::vector<std::string> lines = LogLines(NCCL_LOG_WARN);
  EXPECT_EQ(1, std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
              return line.find("TCPX_GPU_DIRECT_STAGING has no effect") != std::string::npos;
            }));
  EXPECT_EQ(1u, lines.size()) << LogText();
  auto pair = (*plugin)->Connect();
  ASSERT_TRUE(pair.ok()) << pair.status();
  char data[8] = {};
  void* handle = nullptr;
  EXPECT_EQ(ncclInvalidUsage, (*plugin)->net().RegMr(pair->send, data, sizeof(data), NCCL_PTR_CUDA, &handle));
  EXPECT_EQ(ncclSuccess, (*plugin)->net().RegMr(pair->send, data, sizeof(data), NCCL_PTR_HOST, &handle));
}

}  // namespace
}  // namespace tcpx
