#include "bench/nccl_bench/launch.h"

#include <string>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

Options Parsed(const std::vector<std::string>& arguments) {
  absl::StatusOr<Options> options = ParseOptions(arguments);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options();
}

// NCCL_NET_PLUGIN that a rank gets when the caller's is `present`.
std::string PluginFor(const std::vector<std::string>& arguments, const std::string& net, const std::string& present) {
  const Environment environment = [&](const std::string& name) {
    return name == "NCCL_NET_PLUGIN" ? present : std::string();
  };
  return NetEnvironment(Parsed(arguments), net, "/log", environment).at("NCCL_NET_PLUGIN");
}

TEST(NetEnvironment, ForcesTheNetAndItsLog) {
  const auto variables = NetEnvironment(Parsed({}), "tcpx", "/log", [](const std::string&) { return std::string(); });
  EXPECT_EQ(variables.at("NCCL_NET"), "tcpx");
  EXPECT_EQ(variables.at("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(variables.at("NCCL_DEBUG_SUBSYS"), "INIT,NET");
  EXPECT_EQ(variables.at("NCCL_DEBUG_FILE"), "/log");
}

TEST(NetEnvironment, ChoosesThePlugin) {
  EXPECT_EQ(PluginFor({}, "tcpx", ""), "tcpx");
  EXPECT_EQ(PluginFor({}, "tcpx", "/a/lib.so"), "/a/lib.so");
  EXPECT_EQ(PluginFor({}, "tcpx", "none"), "tcpx");
  EXPECT_EQ(PluginFor({"--plugin", "/b.so"}, "tcpx", "/a/lib.so"), "/b.so");
  EXPECT_EQ(PluginFor({"--plugin", ""}, "tcpx", "/a/lib.so"), "") << "removed, for libnccl-net.so";
  EXPECT_EQ(PluginFor({"--plugin", "/b.so"}, "Socket", "/a/lib.so"), "none");
  EXPECT_EQ(PluginFor({}, "ib", ""), "none");
}

TEST(OwnHosts, WhereAGpuIsSharedOrTheNetworkIsMeant) {
  EXPECT_TRUE(OwnHosts(Parsed({"--local", "2"}), 1));
  EXPECT_FALSE(OwnHosts(Parsed({"--local", "2"}), 2));
  EXPECT_TRUE(OwnHosts(Parsed({"--local", "2", "--nets", "tcpx"}), 2));
  EXPECT_FALSE(OwnHosts(Parsed({"--nets", "tcpx"}), 1)) << "the launcher of the job knows its hosts";
  EXPECT_FALSE(OwnHosts(Parsed({"--local", "1", "--nets", "tcpx"}), 1));
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
