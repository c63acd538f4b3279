// The ends of a health socket measure each other's clock, where one of them is asked to.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "common/clock_notes.h"
#include "net_socket/health/health_exchanges.h"
#include "net_socket/health/health_peer.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/health/health_pair.h"

namespace tcpx {
namespace {

class HealthClockTest : public HealthTest {
 protected:
  void SetUp() override {
    near_hub_.MeasureClocks();
    far_hub_.MeasureClocks();
    HealthTest::SetUp();
  }
};

TEST_F(HealthClockTest, TheDiallerLearnsThePeersNameAndClock) {
  ClockNotesReader reader;
  std::vector<ClockNote> measures;
  for (Deadline deadline; measures.empty();) {
    ASSERT_TRUE(deadline.Yield());
    for (ClockNote& note : reader.Read()) {
      if (!note.peer.empty()) measures.push_back(std::move(note));
    }
  }
  ASSERT_EQ(1u, measures.size());
  EXPECT_EQ(near_hub_.clock_notes()->self(), measures[0].self);
  EXPECT_EQ(far_hub_.clock_notes()->self(), measures[0].peer);
  // It is the same clock.
  EXPECT_GT(measures[0].round_trip_ns, 0);
  EXPECT_LE(std::abs(measures[0].offset_ns), measures[0].round_trip_ns / 2 + 2);
  near_->socket().Say(LeftNotice(Id(1), {}), true);
  EXPECT_TRUE(far_comm_.Hears("left;")) << far_comm_.Text();
}

// An end that writes no timeline asks nothing, answers, and has no name to tell.
TEST_F(HealthTest, WithoutATimelineNothingIsAsked) {
  const std::string none(16, '\0');
  TcpPair pair = MakeTcpPair(0);
  reactor_.RunSync([&] { far_hub_.AcceptInLoop(8, std::move(pair.b), {kTimeout}); });
  const std::string question = Record(FrameKind::kClock, none + EncodeClock({1234, 0, 0, ""}));
  const std::string nonsense = Record(FrameKind::kClock, none + "\1x") + Record(FrameKind::kClock, "");
  const std::string all = nonsense + question;
  ASSERT_TRUE(WriteAll(pair.a.get(), all));
  const size_t wanted = kHeaderBytes + none.size() + EncodeClock({1, 2, 3, ""}).size();
  std::string got;
  for (Deadline deadline; got.size() < wanted;) {
    ASSERT_TRUE(deadline.Yield());
    got += ReadAvailable(pair.a.get(), wanted - got.size());
  }
  ClockRecord answer;
  ASSERT_TRUE(DecodeClock(got.substr(kHeaderBytes + 16), &answer));
  EXPECT_EQ(1234, answer.asked_ns);
  EXPECT_TRUE(answer.answers());
  EXPECT_EQ("", answer.who);
  EXPECT_TRUE(ClockNotesReader().Read().empty());
}

}  // namespace
}  // namespace tcpx
