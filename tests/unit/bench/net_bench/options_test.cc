#include "bench/net_bench/options.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

Options Parsed(const std::vector<std::string>& arguments) {
  absl::StatusOr<Options> options = ParseOptions(arguments);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options();
}

TEST(ParseOptions, DefaultsToLatencyAndBandwidth) {
  const Options options = Parsed({"--plugin", "/p.so"});
  EXPECT_EQ(options.plugin, "/p.so");
  EXPECT_EQ(options.modes, (std::vector<Mode>{Mode::kLatency, Mode::kBandwidth}));
  EXPECT_TRUE(options.sizes.empty());
  EXPECT_FALSE(options.raw);
  EXPECT_EQ(options.role, Role::kLocal);
}

TEST(ParseOptions, TakesTheSweepOfNcclTests) {
  const Options options = Parsed({"--raw", "-b", "8", "-e", "1K", "-f", "4", "-n", "20", "-w", "0"});
  EXPECT_EQ(options.sizes, (std::vector<uint64_t>{8, 32, 128, 512}));
  EXPECT_EQ(options.iterations, 20);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_EQ(Parsed({"--raw", "-b", "64K"}).sizes, (std::vector<uint64_t>{65536}));
}

TEST(ParseOptions, TakesModesVersionsAndLists) {
  const Options options =
      Parsed({"--plugin=p", "--mode=latency,bidir", "--api", "v9", "--conns", "4,64", "--cpus=2,3", "--phase=far"});
  EXPECT_EQ(options.modes, (std::vector<Mode>{Mode::kLatency, Mode::kBidirectional}));
  EXPECT_EQ(options.api_version, 9);
  EXPECT_EQ(options.connections, (std::vector<int>{4, 64}));
  EXPECT_EQ(options.cpus, (std::vector<int>{2, 3}));
  EXPECT_EQ(options.phase, PhaseChoice::kFar);
  EXPECT_EQ(Parsed({"--raw", "--api", "12"}).api_version, 12);
}

TEST(ParseOptions, TakesATrafficClass) {
  EXPECT_EQ(Parsed({"--plugin", "p"}).traffic_class, -1);
  EXPECT_EQ(Parsed({"--plugin", "p", "--traffic-class", "0"}).traffic_class, 0);
  EXPECT_EQ(Parsed({"--plugin", "p", "--traffic-class=184"}).traffic_class, 184);
}

TEST(ParseOptions, OptionalReceivesAreAModeOfTheirOwn) {
  EXPECT_EQ(Parsed({"--plugin", "p", "--optional-recv"}).modes, std::vector<Mode>{Mode::kOptionalRecv});
  EXPECT_EQ(Parsed({"--plugin", "p", "--mode", "rate", "--optional-recv"}).modes,
            (std::vector<Mode>{Mode::kRate, Mode::kOptionalRecv}));
  EXPECT_EQ(Parsed({"--plugin", "p", "--mode", "optional-recv"}).modes, std::vector<Mode>{Mode::kOptionalRecv});
}

TEST(ParseOptions, ListensWithAndWithoutAPort) {
  EXPECT_EQ(Parsed({"--listen"}).port, kDefaultPort);
  EXPECT_EQ(Parsed({"--listen", "5000", "--plugin", "p"}).port, 5000);
  const Options options = Parsed({"--listen", "--plugin", "p"});
  EXPECT_EQ(options.port, kDefaultPort);
  EXPECT_EQ(options.plugin, "p");
  EXPECT_EQ(options.role, Role::kListen);
}

TEST(ParseOptions, ConnectsToNamesAndAddresses) {
  struct Row {
    const char* text;
    const char* host;
    int port;
  };
  for (const Row& row : std::vector<Row>{{"node1", "node1", kDefaultPort},
                                         {"node1:99", "node1", 99},
                                         {"10.0.0.1:99", "10.0.0.1", 99},
                                         {"fe80::1%eth0", "fe80::1%eth0", kDefaultPort},
                                         {"[::1]:99", "::1", 99},
                                         {"[::1]", "::1", kDefaultPort}}) {
    const Options options = Parsed({"--raw", "--connect", row.text});
    EXPECT_EQ(options.role, Role::kConnect) << row.text;
    EXPECT_EQ(options.host, row.host) << row.text;
    EXPECT_EQ(options.port, row.port) << row.text;
  }
}

TEST(ParseOptions, HelpNeedsNothingElse) { EXPECT_TRUE(Parsed({"--help"}).help); }

TEST(ParseOptions, RefusesInOneSentence) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"--plugin"},
      {"--bogus"},
      {"plugin.so"},
      {"--raw", "--mode", "speed"},
      {"--raw", "--mode", ""},
      {"--raw", "--api", "v5"},
      {"--raw", "--api", "v13"},
      {"--raw", "--window", "0"},
      {"--raw", "--window", "33"},
      {"--raw", "-b", "x"},
      {"--raw", "-b", "2G"},
      {"--raw", "-b", "64", "-e", "8"},
      {"--raw", "-b", "8", "-e", "64", "-f", "1"},
      {"--raw", "-n", "0"},
      {"--raw", "--csv", "--json"},
      {"--raw", "--vs", "/v.so"},
      {"--raw", "--also", "a.json"},
      {"--plugin", "/p.so", "--vs", "/v.so", "--wire", "rack"},
      {"--plugin", "/p.so", "--report", "r.html", "--wire", "incast"},
      {"--raw", "--phase", "middle"},
      {"--raw", "--conns", "4,x"},
      {"--raw", "--cpus", "1"},
      {"--raw", "--connect", ":99"},
      {"--raw", "--connect", "[::1"},
      {"--raw", "--connect", "host:0"},
      {"--raw", "--connect", "host:70000"},
      {"--raw", "--mode", "idle"},
      {"--raw", "--traffic-class", "1"},
      {"--plugin", "p", "--traffic-class", "256"},
      {"--plugin", "p", "--traffic-class", "-1"},
      {"--raw", "--optional-recv"},
      {"--plugin", "p", "--mode", "allreduce", "--connect", "h"},
      {"--plugin", "p", "--mode", "allreduce,latency"},
      {"--plugin", "p", "--mode", "allreduce", "--ranks", "1"},
      {"--wire", "moon"},
      {"--raw", "--wire-set", "delay=1ms"},
      {"--wire", "rack", "--listen"},
      {"--wire", "rack", "--connect", "h"},
      {"--wire", "rack", "--plugin", "p", "--mode", "allreduce"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    const absl::Status status = ParseOptions(arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << absl::StrJoin(arguments, " ");
    EXPECT_FALSE(status.message().empty());
  }
}

// A flag that the help does not name is a flag that nobody finds.
TEST(UsageText, NamesEveryMode) {
  const std::string usage = UsageText();
  for (Mode mode : {Mode::kLatency, Mode::kBandwidth, Mode::kBidirectional, Mode::kRate, Mode::kMany, Mode::kIdle,
                    Mode::kSetup, Mode::kAllreduce, Mode::kOptionalRecv}) {
    EXPECT_NE(usage.find(ModeName(mode)), std::string::npos) << ModeName(mode);
  }
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
