#include "bench/nccl_bench/options.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

Options Parsed(const std::vector<std::string>& arguments) {
  absl::StatusOr<Options> options = ParseOptions(arguments);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options();
}

TEST(ParseOptions, DefaultsToAnAllReduceOfFloats) {
  const Options options = Parsed({});
  EXPECT_EQ(options.mode, Mode::kBench);
  EXPECT_EQ(options.collectives, std::vector<Collective>{Collective::kAllReduce});
  EXPECT_EQ(options.types, std::vector<DataType>{DataType::kFloat});
  EXPECT_EQ(options.sizes.front(), 1024u);
  EXPECT_EQ(options.sizes.back(), 64u << 20);
  EXPECT_TRUE(options.check);
  EXPECT_EQ(options.local, 0);
}

TEST(ParseOptions, TakesWhatNcclTestsTakes) {
  const Options options = Parsed({"-b",
                                  "8",
                                  "-e",
                                  "1K",
                                  "-f",
                                  "4",
                                  "-n",
                                  "7",
                                  "-w",
                                  "0",
                                  "-r",
                                  "1",
                                  "-d",
                                  "half,int8",
                                  "-o",
                                  "max",
                                  "--collective=all_gather,reduce",
                                  "--local",
                                  "2",
                                  "--graph"});
  EXPECT_EQ(options.sizes, (std::vector<uint64_t>{8, 32, 128, 512}));
  EXPECT_EQ(options.iterations, 7);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_EQ(options.root, 1);
  EXPECT_EQ(options.types, (std::vector<DataType>{DataType::kHalf, DataType::kInt8}));
  EXPECT_EQ(options.ops, std::vector<RedOp>{RedOp::kMax});
  EXPECT_EQ(options.collectives, (std::vector<Collective>{Collective::kAllGather, Collective::kReduce}));
  EXPECT_TRUE(options.graph);
  EXPECT_EQ(Parsed({"-b", "64K"}).sizes, std::vector<uint64_t>{65536});
  EXPECT_EQ(Parsed({"-b", "0"}).sizes, std::vector<uint64_t>{0});
  EXPECT_EQ(Parsed({"--collective", "all", "-d", "all", "-o", "all"}).collectives.size(), 7u);
}

TEST(ParseOptions, TakesNetsModesAndPlugins) {
  const Options options = Parsed({"--nets", "tcpx,Socket", "--plugin", "", "--mode", "reload", "--rounds", "3"});
  EXPECT_EQ(options.nets, (std::vector<std::string>{"tcpx", "Socket"}));
  EXPECT_TRUE(options.plugin_given);
  EXPECT_EQ(options.mode, Mode::kReload);
  EXPECT_EQ(options.rounds, 3);
  EXPECT_FALSE(Parsed({"--no-check"}).check);
  EXPECT_TRUE(Parsed({"--help"}).help);
}

TEST(ParseOptions, RefusesInOneSentence) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--bogus"},
      {"tcpx"},
      {"-b"},
      {"-b", "x"},
      {"-b", "64", "-e", "8"},
      {"-f", "1"},
      {"-n", "0"},
      {"-d", "double"},
      {"-d", ""},
      {"-o", "prod"},
      {"--collective", "scan"},
      {"--mode", "all"},
      {"--mode", "split,abort"},
      {"--local", "0"},
      {"--local", "2", "-r", "2"},
      {"--local", "1", "--mode", "killed"},
      {"--nets", "tcpx,,Socket"},
      {"--timeout", "0"},
      {"--seed", "x"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    const absl::Status status = ParseOptions(arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << absl::StrJoin(arguments, " ");
    EXPECT_FALSE(status.message().empty());
  }
}

// A word that the help does not name is a word that nobody finds.
TEST(UsageText, NamesEveryWord) {
  const std::string usage = UsageText();
  for (Mode mode : kModes) EXPECT_NE(usage.find(ModeName(mode)), std::string::npos) << ModeName(mode);
  for (DataType type : kDataTypes) EXPECT_NE(usage.find(DataTypeName(type)), std::string::npos) << DataTypeName(type);
  for (Collective collective : kCollectives) {
    EXPECT_NE(usage.find(CollectiveName(collective)), std::string::npos) << CollectiveName(collective);
  }
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
