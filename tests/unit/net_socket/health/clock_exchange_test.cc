// How far a peer's clock is ahead, from questions and answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "common/clock.h"
#include "net_socket/health/health_exchanges.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

constexpr int64_t kMinute = 60 * kSecond;

// A peer whose clock is ahead by `ahead_ns`, beyond paths of the given lengths.
struct Far {
  int64_t ahead_ns = 0;
  int64_t now_ns = kMinute;  // ours

  ClockRecord Answer(ClockRecord question, int64_t there_ns, int64_t at_peer_ns, int64_t back_ns) {
    now_ns += there_ns;
    question.heard_ns = now_ns + ahead_ns;
    now_ns += at_peer_ns;
    question.answered_ns = now_ns + ahead_ns;
    question.who = "b/1/2";
    now_ns += back_ns;
    return question;
  }
};

TEST(ClockExchangeTest, TheShortestRoundTripCountsAndBoundsTheError) {
  std::mt19937_64 random(TestSeed());
  std::uniform_int_distribution<int64_t> any(1000, 5 * kMillisecond);
  std::uniform_int_distribution<int64_t> ahead(-100 * kSecond, 100 * kSecond);
  for (int round = 0; round < 1000; ++round) {
    Far far{ahead(random), 1000 * kSecond};
    ClockExchange exchange;
    std::optional<ClockRecord> question = exchange.Begin(far.now_ns);
    std::optional<ClockOffset> measured;
    int64_t shortest_ns = kMinute;
    int questions = 0;
    while (question.has_value()) {
      ++questions;
      const int64_t there_ns = any(random);
      const int64_t back_ns = any(random);
      shortest_ns = std::min(shortest_ns, there_ns + back_ns);
      const ClockRecord answer = far.Answer(*question, there_ns, any(random), back_ns);
      question.reset();
      measured = exchange.Hear(answer, far.now_ns, &question);
    }
    ASSERT_TRUE(measured.has_value());
    EXPECT_EQ(ClockExchange::kQuestions, questions);
    EXPECT_EQ("b/1/2", measured->peer);
    EXPECT_EQ(shortest_ns, measured->round_trip_ns);
    EXPECT_LE(std::abs(measured->offset_ns - far.ahead_ns), measured->round_trip_ns / 2 + 2);
  }
}

TEST(ClockExchangeTest, WhatWasNotAskedCountsForNothing) {
  ClockExchange exchange;
  std::optional<ClockRecord> more;
  EXPECT_FALSE(exchange.Hear({5, 6, 7, "b"}, 9, &more).has_value());
  Far far{5 * kSecond};
  const ClockRecord first = exchange.Begin(far.now_ns);
  const ClockRecord late = far.Answer(first, 10, 10, 10);
  const ClockRecord second = exchange.Begin(far.now_ns);
  EXPECT_FALSE(exchange.Hear(late, far.now_ns, &more).has_value());
  ClockRecord nameless = far.Answer(second, 10, 10, 10);
  nameless.who.clear();
  EXPECT_FALSE(exchange.Hear(nameless, far.now_ns, &more).has_value());
  EXPECT_FALSE(more.has_value());
}

TEST(ClockExchangeTest, APeerThatNeverAnswersIsLeftAlone) {
  ClockExchange exchange;
  for (int i = 0; i < ClockExchange::kUnansweredMax; ++i) {
    EXPECT_TRUE(exchange.asks());
    exchange.Begin(kMinute * (i + 1));
  }
  EXPECT_FALSE(exchange.asks());
}

// It is stopped for a while, or its host has no CPU: that is no older build.
TEST(ClockExchangeTest, APeerThatHasAnsweredOnceIsAskedForEver) {
  ClockExchange exchange;
  Far far;
  std::optional<ClockRecord> more;
  const ClockRecord first = exchange.Begin(kMinute);
  EXPECT_FALSE(exchange.Hear(far.Answer(first, 10, 10, 10), far.now_ns, &more).has_value());
  for (int i = 0; i < 3 * ClockExchange::kUnansweredMax; ++i) {
    EXPECT_TRUE(exchange.asks());
    exchange.Begin(kMinute * (i + 2));
  }
}

TEST(ClockExchangeTest, RecordsAreReadBackAndNonsenseIsNot) {
  ClockRecord record;
  ASSERT_TRUE(DecodeClock(EncodeClock({1, 2, 3, "host/1/ab"}), &record));
  EXPECT_TRUE(record.answers());
  EXPECT_EQ(3, record.answered_ns);
  EXPECT_EQ("host/1/ab", record.who);
  // A newer peer says more.
  EXPECT_TRUE(DecodeClock(EncodeClock({1, 0, 0, ""}) + "more", &record));
  EXPECT_FALSE(record.answers());
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const ClockRecord& wrong : {ClockRecord{0, 1, 2, "x"}, ClockRecord{-1, 1, 2, "x"}, ClockRecord{1, 2, 0, "x"},
                                   ClockRecord{1, 0, 2, "x"}, ClockRecord{1, 3, 2, "x"}, ClockRecord{1, -5, -3, "x"},
                                   ClockRecord{1, 2, 3, "a b"}, ClockRecord{1, 2, 3, "a\n"}}) {
    EXPECT_FALSE(DecodeClock(EncodeClock(wrong), &record));
  }
  EXPECT_FALSE(DecodeClock("", &record));
  EXPECT_FALSE(DecodeClock(std::string(20, '\1'), &record));
  EXPECT_FALSE(DecodeClock(EncodeClock({1, 2, 3, ""}) + "", &record) && !record.who.empty());
  // Times at the ends of what there is overflow nothing.
  ClockExchange exchange;
  std::optional<ClockRecord> more;
  ClockRecord answer = exchange.Begin(5);
  answer.heard_ns = 1;
  answer.answered_ns = most;
  answer.who = "x";
  (void)exchange.Hear(answer, most, &more);
}

}  // namespace
}  // namespace tcpx
