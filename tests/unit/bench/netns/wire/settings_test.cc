#include "bench/netns/wire/settings.h"

#include "bench/netns/wire/profiles.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace wire {
namespace {

TEST(Units, AreRead) {
  EXPECT_EQ(*ParseDuration("50us"), 50000);
  EXPECT_EQ(*ParseDuration("1.5ms"), 1500000);
  EXPECT_EQ(*ParseDuration("0"), 0);
  EXPECT_EQ(*ParseRate("2G"), 2000000000);
  EXPECT_EQ(*ParseRate("64000"), 64000);
  EXPECT_EQ(*ParseBytes("64K"), 65536);
  EXPECT_DOUBLE_EQ(*ParseShare("0.1%"), 0.001);
  EXPECT_DOUBLE_EQ(*ParseShare("100%"), 1);
}

TEST(Units, WrongOnesAreRefused) {
  for (const char* text : {"", "us", "50", "-1us", "nanus", "infs", "61s", "1 us"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  for (const char* text : {"0.1", "101%", "%", "-1%", "nan%"}) EXPECT_FALSE(ParseShare(text).ok()) << text;
  for (const char* text : {"fast", "2T", "-5M", "G"}) EXPECT_FALSE(ParseRate(text).ok()) << text;
}

TEST(Settings, HoldForEveryPathOrForOne) {
  Settings settings;
  ASSERT_TRUE(SetEverywhere("paths", "4", &settings).ok());
  ASSERT_TRUE(SetEverywhere("rate", "200M", &settings).ok());
  ASSERT_TRUE(SetOfPath(3, "rate", "20M", &settings).ok());
  EXPECT_EQ(settings.paths[2].rate, 200000000);
  EXPECT_EQ(settings.paths[3].rate, 20000000);
  EXPECT_FALSE(SetOfPath(4, "rate", "20M", &settings).ok());
  EXPECT_FALSE(SetOfPath(-1, "rate", "20M", &settings).ok());
  EXPECT_FALSE(SetOfPath(0, "flow-rate", "20M", &settings).ok());
}

TEST(Settings, WrongValuesChangeNothing) {
  Settings settings;
  for (const char* key : {"paths", "flow-rate", "delay", "rate", "loss", "loss-run", "cut", "bogus"}) {
    EXPECT_FALSE(SetEverywhere(key, "much", &settings).ok()) << key;
  }
  EXPECT_FALSE(SetEverywhere("paths", "0", &settings).ok());
  EXPECT_FALSE(SetEverywhere("loss-run", "0.5", &settings).ok());
  EXPECT_EQ(settings.paths.size(), 1);
  EXPECT_EQ(settings.paths[0].loss_run, 1);
}

TEST(Settings, QueueHoldsARoundTrip) {
  PathSettings path;
  path.rate = 1000000000;
  EXPECT_EQ(QueueOf(path), 256 << 10);
  path.delay_ns = 10000000;
  EXPECT_EQ(QueueOf(path), 2500000);
  path.queue = 5000;
  EXPECT_EQ(QueueOf(path), 5000);
}

TEST(Profiles, HaveValidSettings) {
  for (const Profile& profile : Profiles()) {
    Settings settings;
    for (const auto& [key, value] : profile.settings) {
      EXPECT_TRUE(SetEverywhere(key, value, &settings).ok()) << profile.name << " " << key;
    }
    EXPECT_GT(settings.paths[0].delay_ns, 0) << profile.name;
  }
  EXPECT_EQ(FindProfile("nowhere"), nullptr);
  EXPECT_EQ(FindProfile("incast")->senders, 8);
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
