#include "bench/command_line/option_parser.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

// A program with one option of each kind.
struct Program {
  Program() {
    parser.Flag("--loud", &loud);
    parser.Flag("--no-pin", &pin, false);
    parser.Number("-n", &number, 1, 9);
    parser.Number("--seed", &seed);
    parser.Numbers("--cpus", &cpus, 0, 99);
    parser.Text("--text", &text);
    parser.SizeSweep(&sweep, 1 << 20, "1M");
    parser.OptionalValue("--listen", [this](const std::string&, const std::string& value) {
      listened.push_back(value);
      return absl::OkStatus();
    });
  }

  std::string Wrong(const std::vector<std::string>& arguments) {
    return std::string(parser.Parse(arguments).message());
  }

  bool loud = false;
  bool pin = true;
  int number = 0;
  uint64_t seed = 0;
  std::vector<int> cpus;
  std::string text;
  Sweep sweep;
  std::vector<std::string> listened;
  OptionParser parser;
};

TEST(OptionParser, ReadsEveryKind) {
  Program program;
  ASSERT_EQ("", program.Wrong({"--loud", "--no-pin", "-n", "3", "--seed=18446744073709551615", "--cpus", "2,3",
                               "--text=a=b", "-b", "1K", "-e", "1M"}));
  EXPECT_TRUE(program.loud);
  EXPECT_FALSE(program.pin);
  EXPECT_EQ(program.number, 3);
  EXPECT_EQ(program.seed, ~uint64_t{0});
  EXPECT_EQ(program.cpus, (std::vector<int>{2, 3}));
  EXPECT_EQ(program.text, "a=b");
  EXPECT_EQ(program.sweep.begin, 1024u);
  EXPECT_EQ(program.sweep.end, 1u << 20);
  EXPECT_FALSE(program.sweep.factor.has_value());
}

TEST(OptionParser, AValueMayBeEmptyOrBeginWithADash) {
  Program program;
  ASSERT_EQ("", program.Wrong({"--text", "--loud"}));
  EXPECT_EQ(program.text, "--loud");
  ASSERT_EQ("", program.Wrong({"--text", ""}));
  EXPECT_EQ(program.text, "");
  ASSERT_EQ("", program.Wrong({"--text", "x", "--text="}));
  EXPECT_EQ(program.text, "");
  EXPECT_FALSE(program.loud);
}

TEST(OptionParser, AnOptionalValueBeginsWithNoDash) {
  Program program;
  ASSERT_EQ("", program.Wrong({"--listen", "--loud", "--listen", "7", "--listen"}));
  EXPECT_EQ(program.listened, (std::vector<std::string>{"", "7", ""}));
  EXPECT_TRUE(program.loud);
}

TEST(OptionParser, SaysWhatIsWrong) {
  Program program;
  EXPECT_EQ("unknown option 'word'", program.Wrong({"word"}));
  EXPECT_EQ("unknown option ''", program.Wrong({""}));
  EXPECT_EQ("unknown option ''", program.Wrong({"--listen", ""}));
  EXPECT_EQ("unknown option '--bogus=1'", program.Wrong({"--bogus=1"}));
  EXPECT_EQ("unknown option '--loud=1'", program.Wrong({"--loud=1"}));
  EXPECT_EQ("unknown option '--listen=7'", program.Wrong({"--listen=7"}));
  EXPECT_EQ("unknown option '-n=3'", program.Wrong({"-n=3"}));
  EXPECT_EQ("-n needs a value", program.Wrong({"-n"}));
  EXPECT_EQ("-n takes a number from 1 to 9, not '10'", program.Wrong({"-n", "10"}));
  EXPECT_EQ("--seed takes a number, not '-1'", program.Wrong({"--seed", "-1"}));
  EXPECT_EQ("--cpus takes a number from 0 to 99, not 'x'", program.Wrong({"--cpus=1,x"}));
  EXPECT_EQ("-b: '' is not a size (examples: 8, 64K, 128M)", program.Wrong({"-b", ""}));
  EXPECT_EQ("-e: 2M is above 1M", program.Wrong({"-e", "2M"}));
}

TEST(ParseWords, FindsThemByName) {
  const std::vector<std::string> known = {"one", "two", "three"};
  EXPECT_EQ(*ParseWords("-w", "three,one", known), (std::vector<size_t>{2, 0}));
  EXPECT_EQ(*ParseWords("-w", "all,two", known, "all"), (std::vector<size_t>{0, 1, 2, 1}));
  EXPECT_EQ("-w: 'all' is none of one, two, three", ParseWords("-w", "all", known).status().message());
  EXPECT_EQ("-w: '' is none of one, two, three", ParseWords("-w", "one,", known, "all").status().message());
}

TEST(SweepSizes, RefusesWhatDoesNotGrow) {
  EXPECT_EQ(*SweepSizes(8, 64, 4), (std::vector<uint64_t>{8, 32}));
  EXPECT_EQ("-f is at least 2", SweepSizes(8, 64, 1).status().message());
  EXPECT_EQ("-e is smaller than -b", SweepSizes(8, 4, 2).status().message());
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
