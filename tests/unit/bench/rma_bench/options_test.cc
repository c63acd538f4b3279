// What the command line of rma_bench becomes, and which cells and floors its modes have.
#include "bench/rma_bench/options.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "bench/net_bench/plan.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

Options Parsed(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--library", "lib.so"});
  const auto options = ParseRmaOptions(arguments);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.value_or(Options());
}

std::vector<Implementation> ImplementationsOf(const Options& options, Mode mode) {
  std::vector<Implementation> all;
  for (const Cell& cell : CellsFor(options, mode, 1)) all.push_back(cell.implementation);
  return all;
}

TEST(RmaOptions, DefaultsAreAllThreeModesComparedWithBareSockets) {
  const Options options = Parsed({});
  EXPECT_TRUE(options.one_sided && options.raw);
  EXPECT_EQ(options.plugin, "lib.so");
  EXPECT_STREQ(options.program, "rma_bench");
  EXPECT_EQ(options.modes, (std::vector<Mode>{Mode::kLatency, Mode::kRate, Mode::kBandwidth}));
  EXPECT_EQ(SizesFor(options, Mode::kLatency), (std::vector<uint64_t>{8}));
  EXPECT_EQ(SizesFor(options, Mode::kRate).back(), 1024u);
  EXPECT_EQ(SizesFor(options, Mode::kBandwidth).front(), uint64_t{64} << 10);
  EXPECT_EQ(SizesFor(options, Mode::kBandwidth).back(), uint64_t{16} << 20);
}

TEST(RmaOptions, AreTaken) {
  const Options options = Parsed({"--vs", "other.so", "--table", "v14", "--mode=rate", "-b", "64", "-e", "256", "-f",
                                  "4", "--samples", "3", "--phase", "any", "--window=4"});
  EXPECT_EQ(options.vs, "other.so");
  EXPECT_EQ(options.api_version, 14);
  EXPECT_EQ(options.modes, (std::vector<Mode>{Mode::kRate}));
  EXPECT_EQ(options.sizes, (std::vector<uint64_t>{64, 256}));
  EXPECT_EQ(options.samples, 3);
  EXPECT_EQ(options.phase, PhaseChoice::kAny);
  EXPECT_EQ(options.window, 4);
}

TEST(RmaOptions, OneSideListensAndTheOtherConnects) {
  const Options listens = Parsed({"--listen", "5000"});
  EXPECT_TRUE(listens.role == Role::kListen && listens.port == 5000);
  const Options connects = Parsed({"--connect", "host:5000", "--alone", "-n", "9", "-w", "0"});
  EXPECT_TRUE(connects.role == Role::kConnect && connects.port == 5000 && connects.host == "host");
  EXPECT_TRUE(!connects.raw && connects.iterations == 9 && connects.warmup == 0);
}

TEST(RmaOptions, WrongOnesAreRefusedInOneSentence) {
  const struct {
    std::vector<std::string> arguments;
    const char* told;
  } rows[] = {
      {{}, "--library PATH"},
      {{"--library"}, "--library needs a value"},
      {{"--library", "x", "--table", "v13"}, "--table"},
      {{"--library", "x", "--mode", "bidir"}, "bidir"},
      {{"--library", "x", "--phase", "near,far"}, "--phase takes one of"},
      {{"--library", "x", "--csv", "--json"}, "exclude each other"},
      {{"--library", "x", "-b", "0"}, "at least one byte"},
      {{"--library", "x", "--cpus", "1"}, "one CPU per process"},
      {{"--library", "x", "--alone", "--vs", "y"}, "exclude each other"},
      {{"--library", "x", "--connect", ":99"}, "--connect"},
      {{"--bogus"}, "unknown option '--bogus'"},
  };
  for (const auto& row : rows) {
    const auto options = ParseRmaOptions(row.arguments);
    ASSERT_FALSE(options.ok()) << row.told;
    EXPECT_TRUE(absl::StrContains(options.status().message(), row.told)) << options.status();
  }
}

TEST(RmaPlan, LargePutsAreComparedWithIsendAndIrecvWhereThereAre) {
  Options options = Parsed({"-b", "64K"});
  const std::vector<Implementation> bare = {Implementation::kPlugin, Implementation::kRawOne};
  EXPECT_EQ(ImplementationsOf(options, Mode::kLatency), bare);
  EXPECT_EQ(ImplementationsOf(options, Mode::kRate), bare);
  EXPECT_EQ(ImplementationsOf(options, Mode::kBandwidth), (std::vector<Implementation>{Implementation::kPlugin}));
  EXPECT_EQ(ImplementationsOf(Parsed({"--alone"}), Mode::kLatency),
            (std::vector<Implementation>{Implementation::kPlugin}));
  options.send_receive = true;
  const std::vector<Implementation> beside = {Implementation::kPlugin, Implementation::kSendReceive};
  EXPECT_EQ(ImplementationsOf(options, Mode::kBandwidth), beside);
}

TEST(RmaPlan, ARateHasAsManyInFlightAsNcclHas) {
  const Options options = Parsed({});
  EXPECT_EQ(WindowFor(options, Mode::kRate), 32);
  EXPECT_EQ(WindowFor(options, Mode::kBandwidth), 8);
  EXPECT_EQ(WindowFor(Options(), Mode::kRate), 8);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
