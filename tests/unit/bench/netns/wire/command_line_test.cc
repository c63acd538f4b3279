#include "bench/netns/wire/command_line.h"

#include "gtest/gtest.h"

namespace tcpx {
namespace wire {
namespace {

const std::vector<std::string> kEnds = {"--end", "a:w0=10.0.0.1,fd00::1", "--end", "b:w0=10.0.0.2"};

absl::StatusOr<Options> Parse(const std::vector<std::string>& more) {
  std::vector<std::string> all = kEnds;
  all.insert(all.end(), more.begin(), more.end());
  return ParseCommandLine(all);
}

TEST(CommandLine, NamesTheEnds) {
  const absl::StatusOr<Options> options = Parse({});
  ASSERT_TRUE(options.ok());
  ASSERT_EQ(options->ends.size(), 2);
  EXPECT_EQ(options->ends[0].netns, "a");
  EXPECT_EQ(options->ends[0].device, "w0");
  ASSERT_EQ(options->ends[0].addresses.size(), 2);
  EXPECT_EQ(options->ends[0].addresses[0][3], 1);
  EXPECT_EQ(options->ends[0].addresses[1][0], 0xfd);
}

TEST(CommandLine, LaterOptionsOverrideTheProfile) {
  const absl::StatusOr<Options> options =
      Parse({"--profile", "cloud", "--delay", "1ms", "--path", "3:rate=20M", "--seed", "7", "--control", "/tmp/x"});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->settings.paths.size(), 8);
  EXPECT_EQ(options->settings.paths[2].rate, 200000000);
  EXPECT_EQ(options->settings.paths[3].rate, 20000000);
  EXPECT_EQ(options->settings.paths[3].delay_ns, 1000000);
  EXPECT_EQ(options->seed, 7);
  EXPECT_EQ(options->control, "/tmp/x");
}

TEST(CommandLine, SaysWhatIsWrong) {
  EXPECT_FALSE(ParseCommandLine({}).ok());
  EXPECT_FALSE(ParseCommandLine({"--end", "a:w0=10.0.0.1"}).ok());
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"--bogus", "1"},
                                                                                     {"--delay"},
                                                                                     {"--delay", "soon"},
                                                                                     {"--profile", "moon"},
                                                                                     {"--end", "a"},
                                                                                     {"--end", "a:w0"},
                                                                                     {"--end", "a:w0=here"},
                                                                                     {"--path", "9:rate=1M"},
                                                                                     {"delay", "1ms"},
                                                                                     {"--seed", "x"}}) {
    EXPECT_EQ(Parse(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong[0];
  }
  EXPECT_EQ(Parse({"--delay", "soon"}).status().message(), "--delay: 'soon' is no duration, like 50us, 20ms or 1s");
}

TEST(CommandLine, HelpNamesEverySetting) {
  const std::string help = UsageText();
  for (const char* word : {"flow-rate", "loss-run", "reorder-by", "cut on", "rack", "incast"}) {
    EXPECT_NE(help.find(word), std::string::npos) << word;
  }
}

TEST(ApplyLine, ChangesSettings) {
  Settings settings;
  EXPECT_TRUE(ApplyLine("set paths 2", &settings).ok());
  EXPECT_TRUE(ApplyLine("set path 1 rate 20M", &settings).ok());
  EXPECT_TRUE(ApplyLine("  set  delay  5ms ", &settings).ok());
  EXPECT_TRUE(ApplyLine("cut on", &settings).ok());
  EXPECT_EQ(settings.paths[0].rate, 0);
  EXPECT_EQ(settings.paths[1].rate, 20000000);
  EXPECT_EQ(settings.paths[0].delay_ns, 5000000);
  EXPECT_TRUE(settings.paths[1].cut);
  for (const char* wrong : {"", "cut", "cut maybe", "set delay", "set path x rate 1M", "go"}) {
    EXPECT_FALSE(ApplyLine(wrong, &settings).ok()) << wrong;
  }
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
