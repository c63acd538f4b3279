// What ranks tell each other of what they wait for, and what a ring of them comes to.
#include "net_socket/health/stall_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/this_host.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

std::string Name(int rank) { return "node pid " + std::to_string(rank); }
uint64_t Number(int rank) { return static_cast<uint64_t>(100 + rank); }

// A ring without sockets: each rank's news is what RootOf makes of its two ends, as StallProbe puts them.
class Ring {
 public:
  explicit Ring(int size) : roots_(static_cast<size_t>(size)), lags_(static_cast<size_t>(size)) {}

  // What a rank finds by itself about the one before it.
  void Find(int rank, Verdict verdict) {
    finder_ = rank;
    found_ = std::move(verdict);
  }
  void Lag(int rank, uint64_t messages) { lags_[static_cast<size_t>(rank)] = messages; }
  // So many rounds of news, one rank after the other.
  void Talk(int rounds) {
    for (int i = 0; i < rounds * size(); ++i) Look(i % size());
  }
  const WaitRoot& root(int rank) const { return roots_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(roots_.size()); }

 private:
  void Look(int rank) {
    const int before = (rank + size() - 1) % size();
    WaitNews news;
    news.stalled_ms = 1000;
    news.root = roots_[static_cast<size_t>(before)];
    WaitNews heard;
    ASSERT_TRUE(DecodeNews(EncodeNews(news), &heard));
    StallEvidence evidence;
    evidence.self = Number(rank);
    evidence.here = Name(rank);
    evidence.there = Name(before);
    evidence.speaks = true;
    evidence.peer = &heard;
    StallMember receive;
    receive.there = Name(before);
    receive.stalled_since_ns = 1;
    receive.messages_done = lags_[static_cast<size_t>(rank)];
    receive.verdict = rank == finder_ ? found_ : JudgeStall(evidence);
    receive.peer_root = heard.root;
    roots_[static_cast<size_t>(rank)] = RootOf({&receive}, Number(rank), Name(rank));
  }

  std::vector<WaitRoot> roots_;
  std::vector<uint64_t> lags_;
  int finder_ = -1;
  Verdict found_;
};

Verdict Stopped(int rank) {
  Verdict verdict;
  verdict.cause = Cause::kProcessStopped;
  verdict.hard = true;
  verdict.culprit = Name(rank);
  return verdict;
}

TEST(StallGroupTest, ACauseGoesRoundTheRing) {
  for (const int size : {2, 4, 64}) {
    Ring ring(size);
    ring.Find(1, Stopped(0));
    ring.Talk(2);
    for (int rank = 1; rank < size; ++rank) {
      EXPECT_EQ(Cause::kProcessStopped, ring.root(rank).cause) << rank << " of " << size;
      EXPECT_EQ(Name(0), ring.root(rank).culprit);
    }
    EXPECT_LE(ring.root(size - 1).chain.size(), kChainMax);
  }
}

TEST(StallGroupTest, OfACircleTheOneThatHoldsMostIsNamed) {
  for (const int size : {2, 4, 9}) {
    for (int late = 0; late < size; ++late) {
      Ring ring(size);
      for (int rank = 0; rank < size; ++rank) ring.Lag(rank, rank == late ? 7u : 3u);
      ring.Talk(2);
      ring.Talk(5);  // It stays so.
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(Cause::kPeerLate, ring.root(rank).cause) << rank << " of " << size;
        EXPECT_EQ(Name(late), ring.root(rank).culprit) << rank << " of " << size;
      }
    }
  }
}

// It is over before all have heard of it, and comes round to its finder, who took it for the sign of a circle.
TEST(StallGroupTest, WhatWasFoundOfOneselfAndIsOverComesRoundInVain) {
  for (const Cause cause : {Cause::kNoCpu, Cause::kPeerLate}) {
    Ring ring(4);
    for (int rank = 0; rank < 4; ++rank) ring.Lag(rank, rank == 2 ? 9 : 1);
    Verdict own = Stopped(0);
    own.cause = cause;
    ring.Find(0, own);
    ring.Talk(2);
    ASSERT_EQ(Name(0), ring.root(3).culprit);
    ring.Find(-1, Verdict());
    ring.Talk(8);
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(Cause::kPeerLate, ring.root(rank).cause);
      EXPECT_EQ(Name(2), ring.root(rank).culprit);
    }
  }
}

TEST(StallGroupTest, ACauseThatIsOverIsForgotten) {
  Ring ring(4);
  ring.Lag(3, 9);
  ring.Find(1, Stopped(0));
  ring.Talk(2);
  ring.Find(-1, {});
  ring.Talk(3);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(Name(3), ring.root(rank).culprit) << rank;
}

TEST(StallGroupTest, FirmCausesComeFirst) {
  StallMember soft;
  soft.stalled_since_ns = 1;
  soft.there = soft.verdict.culprit = "b";
  soft.verdict.cause = Cause::kPeerLate;
  StallMember hard = soft;
  hard.there = "c";
  hard.verdict = Stopped(2);
  EXPECT_EQ(Cause::kProcessStopped, RootOf({&soft, &hard}, 1, "a").cause);
  EXPECT_EQ(Cause::kProcessStopped, RootOf({&hard, &soft}, 1, "a").cause);
  hard.stalled_since_ns = 0;
  EXPECT_EQ(Cause::kPeerLate, RootOf({&soft, &hard}, 1, "a").cause);
}

// Where there is a firewall, one end can't tell it from a host that is gone, and the other end may.
TEST(StallGroupTest, AnEndThatKnowsMoreThanAGoneHostIsBelieved) {
  StallMember gone;
  gone.stalled_since_ns = 1;
  gone.there = "b";
  gone.verdict = Stopped(1);
  gone.verdict.cause = Cause::kHostGone;
  StallMember told = gone;
  told.there = "c";
  told.verdict.cause = told.peer_root.cause = Cause::kFlowDropped;
  told.verdict.follows = true;
  told.peer_root.finder = 7;
  EXPECT_EQ(Cause::kFlowDropped, RootOf({&gone, &told}, 1, "a").cause);
  EXPECT_EQ(Cause::kFlowDropped, RootOf({&told, &gone}, 1, "a").cause);
  told.verdict.cause = told.peer_root.cause = Cause::kPeerLate;
  told.verdict.hard = false;
  EXPECT_EQ(Cause::kHostGone, RootOf({&told, &gone}, 1, "a").cause);
}

std::vector<StallGroup::Key> Keys(size_t count) {
  std::vector<StallGroup::Key> keys(count);
  std::generate(keys.begin(), keys.end(), StallGroup::NewKey);
  return keys;
}

// A member that leaves late, when another end is where it was, leaves its own place.
TEST(StallGroupTest, NoKeyComesAgain) {
  std::vector<StallGroup::Key> keys = Keys(1000);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys.end(), std::adjacent_find(keys.begin(), keys.end()));
}

// Beyond a few they are not weighed anew at each look.
TEST(StallGroupTest, OfManyConnectionsAllAreHeardSoon) {
  for (const int count : {1, 16, 17, 1000}) {
    StallGroup group;
    const std::vector<StallGroup::Key> keys = Keys(static_cast<size_t>(count));
    for (int round = 0; round < 3; ++round) {
      const int64_t now_ns = (100 + round) * 100 * kMillisecond;
      for (const StallGroup::Key& key : keys) {
        StallMember member;
        member.stalled_since_ns = round == 2 ? 0 : 1;
        if (&key == &keys.back()) member.verdict = Stopped(3);
        group.PutInLoop(key, member, now_ns);
      }
      EXPECT_TRUE(count > 16 || group.root_in_loop().known() == (round < 2)) << count;
    }
    StallMember moves;
    group.PutInLoop(keys[0], moves, 1000 * kSecond);
    EXPECT_FALSE(group.root_in_loop().known()) << count;
    moves.stalled_since_ns = 1;
    moves.verdict = Stopped(3);
    group.PutInLoop(keys[0], moves, 2000 * kSecond);
    EXPECT_EQ(Name(3), group.root_in_loop().culprit) << count;
    for (const StallGroup::Key key : keys) group.LeaveInLoop(key);
  }
}

TEST(WaitNewsTest, ComesBackAsItWent) {
  WaitNews news;
  news.asks = true;
  news.who = "node7 pid 4711 (rank 3)";
  news.posted = 4;
  news.sequence = uint64_t{1} << 40;
  news.stalled_ms = 12345;
  news.no_cpu_percent = 33;
  news.root.cause = Cause::kFlowDropped;
  news.root.finder = 77;
  news.root.serial = 5;
  news.root.lag = -3;
  news.root.culprit = "the path between x and y";
  news.root.evidence = "lane 1";
  news.root.chain = {"x", "y"};
  WaitNews heard;
  const std::string text = EncodeNews(news);
  ASSERT_TRUE(DecodeNews(text, &heard));
  EXPECT_TRUE(heard.asks);
  EXPECT_EQ(news.who, heard.who);
  EXPECT_EQ(news.posted, heard.posted);
  EXPECT_EQ(news.sequence, heard.sequence);
  EXPECT_EQ(news.stalled_ms, heard.stalled_ms);
  EXPECT_EQ(news.no_cpu_percent, heard.no_cpu_percent);
  EXPECT_EQ(news.root.cause, heard.root.cause);
  EXPECT_EQ(news.root.finder, heard.root.finder);
  EXPECT_EQ(news.root.lag, heard.root.lag);
  EXPECT_EQ(news.root.culprit, heard.root.culprit);
  EXPECT_EQ(news.root.chain, heard.root.chain);
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    WaitNews cut;
    EXPECT_FALSE(DecodeNews(text.substr(0, bytes), &cut)) << bytes;
  }
  WaitNews more;
  EXPECT_TRUE(DecodeNews(text + "what a newer build adds", &more));
}

// A build that does not know the number skips it, and its own introduction has none.
TEST(WaitNewsTest, AnIntroductionHasTheNumberOfItsProcess) {
  WaitNews news;
  news.who = "node7 pid 1";
  const std::string earlier = EncodeNews(news);
  news.process = 0xfedcba9876543210;
  const std::string text = EncodeNews(news);
  EXPECT_EQ(earlier + std::string("\x10\x32\x54\x76\x98\xba\xdc\xfe", 8), text);
  WaitNews heard;
  ASSERT_TRUE(DecodeNews(text, &heard));
  EXPECT_EQ(news.process, heard.process);
  ASSERT_TRUE(DecodeNews(earlier + "1234567", &heard));
  EXPECT_EQ(0u, heard.process);
  EXPECT_NE(0u, ThisProcessNumber());
  EXPECT_EQ(ThisProcessNumber(), ThisProcessNumber());
}

// That it has a bug is for a build to say of itself.
TEST(WaitNewsTest, APeerDoesNotSayWhatIsOurFault) {
  WaitNews news;
  news.root.cause = Cause::kInternal;
  news.root.culprit = "node1 pid 7";
  news.root.evidence = "a bug of tcpx";
  WaitNews heard;
  ASSERT_TRUE(DecodeNews(EncodeNews(news), &heard));
  EXPECT_EQ("node2 waits for node1 pid 7: internal: no reason is to be seen (so the peer says)",
            DescribeRoot("node2", heard.root));
}

// Two containers of one host may both have a process 1.
TEST(WaitNewsTest, AProcessIsNamedByItsPidNamespaceToo) {
  const std::string name(ThisProcessName());
  EXPECT_NE(name.find(" pid " + ProcessMark()), std::string::npos) << name;
}

TEST(WaitNewsTest, StaysWithinItsBounds) {
  WaitNews news;
  news.who = news.root.culprit = news.root.evidence = std::string(500, 'x');
  news.root.chain.assign(50, std::string(500, 'y'));
  const std::string text = EncodeNews(news);
  EXPECT_LE(text.size(), kNewsBytesMax);
  WaitNews heard;
  EXPECT_TRUE(DecodeNews(text, &heard));
  EXPECT_EQ(kChainMax, heard.root.chain.size());
  // A path between two processes with long names.
  EXPECT_EQ(std::string(255, 'x'), heard.root.culprit);
}

TEST(WaitNewsTest, NonsenseDoesNoHarm) {
  Rng rng(TestSeed());
  const std::string good = EncodeNews(WaitNews());
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (int flips = 0; flips < 4; ++flips) {
      text[rng.Between(0, text.size() - 1)] = static_cast<char>(rng.Next());
    }
    WaitNews news;
    if (!DecodeNews(text, &news)) continue;
    EXPECT_LT(static_cast<int>(news.root.cause), kCauses);
    EXPECT_LE(news.root.chain.size(), kChainMax);
    for (const char c : DescribeRoot(news.who, news.root)) ASSERT_TRUE(c >= ' ' && c <= '~');
  }
}

// All of them are gone through for a root: at once where one has news, and else once a second.
TEST(StallGroupTest, ACrowdIsLookedThroughForNewsAndElseSeldom) {
  StallGroup group;
  const std::vector<StallGroup::Key> keys = Keys(100);
  const auto put = [&](size_t i, const char* culprit, const char* evidence, int64_t now_ns) {
    StallMember member;
    member.stalled_since_ns = 1;
    member.verdict = Stopped(0);
    member.verdict.culprit = culprit;
    member.verdict.evidence = evidence;
    (void)group.PutInLoop(keys[i], member, now_ns);
  };
  int64_t now_ns = 10 * kSecond;
  for (size_t i = 0; i < keys.size(); ++i) put(i, "b", "at first", now_ns += kMillisecond);
  now_ns = 11 * kSecond;
  for (size_t i = 0; i < keys.size(); ++i) put(i, "b", "at first", now_ns);
  ASSERT_EQ("at first", group.root_in_loop().evidence);
  now_ns += kSecond * 9 / 10;
  for (size_t i = 0; i < keys.size(); ++i) put(i, "b", "no news", now_ns);
  EXPECT_EQ("at first", group.root_in_loop().evidence);
  now_ns += kSecond * 2 / 10;
  put(0, "b", "no news", now_ns);
  EXPECT_EQ("no news", group.root_in_loop().evidence);
  now_ns += kSecond * 2 / 10;
  put(7, "a", "news", now_ns);
  EXPECT_EQ("news", group.root_in_loop().evidence);
}

}  // namespace
}  // namespace tcpx
