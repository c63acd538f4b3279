#include "bench/net_bench/wired.h"

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

std::vector<std::string> ArgumentsOf(const std::vector<std::string>& arguments) {
  const absl::StatusOr<Options> options = ParseOptions(arguments);
  EXPECT_TRUE(options.ok()) << options.status();
  return WiredArguments(*options, arguments, "/bin/net_bench");
}

TEST(WiredArguments, AloneNameTheProfile) {
  const std::vector<std::string> expected = {"--profile", "rack", "--net-bench", "/bin/net_bench", "--"};
  EXPECT_EQ(ArgumentsOf({"--wire", "rack"}), expected);
  EXPECT_EQ(ArgumentsOf({"--wire=rack"}), expected);
}

TEST(WiredArguments, HandOnWhatTheScriptDoesNotTake) {
  const std::vector<std::string> expected = {"--profile", "wan",     "--net-bench", "/bin/net_bench",
                                             "--set",     "loss=1%", "--plugin",    "p",
                                             "--",        "--mode",  "rate",        "--window=4"};
  EXPECT_EQ(ArgumentsOf({"--mode", "rate", "--wire", "wan", "--plugin=p", "--window=4", "--wire-set", "loss=1%"}),
            expected);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
