// What ends a group, who hears of it, and how long an end takes.
#include "net_socket/rma/group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "net_socket/rma/group_peers.h"
#include "tests/unit/net_socket/rma/fake_net.h"

namespace tcpx {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr uint32_t kRanks = 3;

class RmaGroupTest : public testing::Test {
 protected:
  RmaGroupTest() {
    limits_.linger_ns = 50 * kMs;
    limits_.hello_timeout_ns = 1000 * kMs;
    limits_.peer_timeout_ns = 30'000 * kMs;
  }
  ~RmaGroupTest() override { group_->Close(); }
  void SetUp() override {
    listen_.listen = &net_.listen_comm;
    for (auto& handle : handles_) pointers_.push_back(handle.data());
    Open();
  }
  void Open() {
    group_ = std::make_unique<RmaGroup>(&net_, limits_, &listen_, absl::MakeSpan(pointers_), 0);
    contexts_ = group_->OpenContexts(1, kNoTrafficClass);
    window_ = *group_->Register(memory_, sizeof(memory_), MemoryType::kHost, RmaUse::kWindow);
  }
  // With other limits.
  void Reopen() {
    listen_.listen = &net_.listen_comm;
    group_->Close();
    Open();
  }
  RmaOperation Put(uint32_t rank, size_t bytes) {
    RmaOperation put;
    put.rank = rank;
    put.bytes = bytes;
    put.local = put.remote = window_;
    return put;
  }
  absl::Status Post(const RmaOperation& operation) { return group_->Post(contexts_, 0, operation, &request_); }
  // Rank `rank` dials, and says who it is.
  void Greet(Comm* comm, uint32_t rank) {
    net_.incoming.push_back(comm);
    ASSERT_TRUE(group_->Progress().ok());
    RmaRecord hello;
    hello.kind = RmaKind::kHello;
    hello.token = rank;
    hello.bytes = pointers_.size();
    net_.DeliverTo(comm, RecordBytes(hello));
    ASSERT_TRUE(group_->Progress().ok());
    ASSERT_TRUE(group_->Progress().ok());
  }
  // The peer asks for the first `bytes` of the window.
  void Get(const Comm* comm, uint64_t bytes) {
    RmaRecord get;
    get.kind = RmaKind::kGet;
    get.region = static_cast<uint32_t>(window_ - 1);
    get.bytes = bytes;
    net_.DeliverTo(comm, RecordBytes(get));
    ASSERT_TRUE(group_->Progress().ok());
  }
  void Bye(const Comm* comm, bool orderly) {
    RmaRecord bye;
    bye.kind = RmaKind::kBye;
    bye.bytes = orderly ? 1 : 0;
    net_.DeliverTo(comm, RecordBytes(bye));
    ASSERT_TRUE(group_->Progress().ok());
  }
  // A group has the real clock, and that nothing happens is no event.
  static void OutlastGrace() { usleep(static_cast<useconds_t>(GroupPeers::kGraceNs / 1000 * 3 / 2)); }

  FakeNet net_;
  RmaLimits limits_;
  RmaListen listen_;
  std::array<std::array<char, kHandleBytes>, kRanks> handles_ = {};
  std::vector<void*> pointers_;
  alignas(8) char memory_[64 << 10] = {};
  Comm first_;
  Comm second_;
  std::unique_ptr<RmaGroup> group_;
  RmaContexts* contexts_ = nullptr;
  RmaHandle window_ = 0;
  RmaRequest* request_ = nullptr;
};

TEST_F(RmaGroupTest, MemoryOfAGetThatGoesEndsTheGroup) {
  RmaOperation get = Put(1, 100);
  get.get = true;
  ASSERT_TRUE(Post(get).ok());
  group_->Deregister(window_);
  EXPECT_TRUE(group_->failed());
}

TEST_F(RmaGroupTest, MemoryThatGoesBeforeAPutHasLeftEndsTheGroup) {
  net_.dials = false;
  ASSERT_TRUE(Post(Put(1, sizeof(memory_))).ok());
  group_->Deregister(window_);
  EXPECT_TRUE(group_->failed());
}

TEST_F(RmaGroupTest, MemoryMayGoOnceThePeerHasWhatItGot) {
  limits_.linger_ns = 60'000 * kMs;  // On a busy machine each look may take long.
  Reopen();
  Greet(&first_, 1);
  net_.unfinished = 10;
  Get(&first_, sizeof(memory_));
  group_->Deregister(window_);
  EXPECT_EQ(net_.unfinished, 0);
  EXPECT_TRUE(group_->Progress().ok());
}

TEST_F(RmaGroupTest, MemoryThatGoesBeforeAPeerHasWhatItGotEndsTheGroupAfterTheLinger) {
  Greet(&first_, 1);
  net_.unfinished = 1 << 30;
  Get(&first_, sizeof(memory_));
  group_->Deregister(window_);
  EXPECT_TRUE(group_->failed());
}

TEST_F(RmaGroupTest, TheRefusedOperationsPeerHearsOfIt) {
  Greet(&first_, 1);
  Greet(&second_, 2);
  ASSERT_TRUE(Post(Put(2, 8)).ok());
  ASSERT_TRUE(group_->Progress().ok());
  ASSERT_FALSE(net_.sent.empty());
  EXPECT_FALSE(Post(Put(2, sizeof(memory_) + 1)).ok());
  ASSERT_EQ(net_.failures.size(), 1u);
  EXPECT_EQ(net_.failures[0].first, net_.sent[0].first);
  EXPECT_NE(net_.failures[0].second.message().find("rank 0 of 3, here: "), absl::string_view::npos);
}

TEST_F(RmaGroupTest, EveryPeerHearsOfItWhereErrorsDontSpread) {
  limits_.spread_errors = false;
  Reopen();
  Greet(&first_, 1);
  Greet(&second_, 2);
  EXPECT_FALSE(Post(Put(7, 8)).ok());
  EXPECT_EQ(net_.failures.size(), 2u);
}

TEST_F(RmaGroupTest, CountsWhatItWasAskedFor) {
  RmaCounts counts;
  limits_.counts = &counts;
  Reopen();
  RmaOperation put = Put(1, 8);
  put.has_signal = true;
  put.signal = window_;
  ASSERT_TRUE(Post(put).ok());
  ASSERT_TRUE(Post(Put(1, sizeof(memory_))).ok());
  EXPECT_EQ(counts.ReadRma().under_way, 2u);
  group_->Close();
  group_ = std::make_unique<RmaGroup>(&net_, RmaLimits(), &listen_, absl::MakeSpan(pointers_), 0);
  const RmaNumbers numbers = counts.ReadRma();
  EXPECT_EQ(numbers.groups, 1u);
  EXPECT_EQ(numbers.puts, 2u);
  EXPECT_EQ(numbers.in_batches, 1u);
  EXPECT_EQ(numbers.following, 1u);
  EXPECT_EQ(numbers.signals, 1u);
  EXPECT_EQ(numbers.bytes, 8 + sizeof(memory_));
  EXPECT_EQ(numbers.under_way, 0u);
  EXPECT_EQ(numbers.under_way_max, 2u);
}

TEST_F(RmaGroupTest, ARequestIsReportedOnce) {
  ASSERT_TRUE(Post(Put(0, 8)).ok());
  bool done = false;
  ASSERT_TRUE(group_->Test(request_, &done).ok());
  EXPECT_TRUE(done);
  done = false;
  EXPECT_FALSE(group_->Test(request_, &done).ok());
  EXPECT_FALSE(done);
  EXPECT_FALSE(group_->failed());
}

TEST_F(RmaGroupTest, TestAloneMovesWhatComesIn) {
  net_.dials = false;
  Greet(&first_, 1);
  ASSERT_TRUE(Post(Put(2, 8)).ok());
  RmaRecord put;
  put.bytes = 3;
  net_.DeliverTo(&first_, RecordBytes(put, "abc"));
  bool done = false;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(group_->Test(request_, &done).ok());
  EXPECT_EQ(std::string(memory_, 3), "abc");
}

TEST_F(RmaGroupTest, IdleConnectionsAreAskedByTurns) {
  constexpr int kMany = 100;
  constexpr int kTurns = 7;  // 16 in a pass
  pointers_.resize(kMany, handles_[0].data());
  Reopen();
  std::vector<Comm> comms(kMany);
  for (uint32_t rank = 1; rank < kMany; ++rank) Greet(&comms[rank], rank);
  const auto tests_in = [this](int passes) {
    net_.tests_of_posts = 0;
    for (int i = 0; i < passes; ++i) EXPECT_TRUE(group_->Progress().ok());
    return net_.tests_of_posts;
  };
  (void)tests_in(100);
  EXPECT_EQ(tests_in(kTurns), kMany - 1) << "each once";
  RmaRecord put;
  put.bytes = 3;
  net_.DeliverTo(&comms[50], RecordBytes(put, "abc"));
  (void)tests_in(kTurns);
  EXPECT_EQ(std::string(memory_, 3), "abc");
  EXPECT_EQ(tests_in(kTurns), kMany - 1 + kTurns - 1) << "that one in each pass";
  net_.tests_of_posts = 0;
  bool moved = false;
  for (int i = 0; i < 2; ++i) (void)group_->Tick(&moved);
  EXPECT_EQ(net_.tests_of_posts, kMany - 1) << "a tick comes seldom";
}

TEST_F(RmaGroupTest, StrangersAreBoundedAndEndNothing) {
  std::vector<std::unique_ptr<Comm>> comms;
  for (int i = 0; i < 50; ++i) {
    comms.push_back(std::make_unique<Comm>());
    net_.incoming.push_back(comms.back().get());
    ASSERT_TRUE(group_->Progress().ok());
  }
  EXPECT_GT(net_.closed.size(), 40u);
  EXPECT_EQ(std::count(net_.closed.begin(), net_.closed.end(), comms[49].get()), 0) << "the oldest make room";
  net_.DeliverTo(comms[49].get(), std::string(3, 'x'));
  EXPECT_TRUE(group_->Progress().ok());
  EXPECT_FALSE(group_->failed());
  EXPECT_TRUE(net_.adopted.empty());
}

// However many strangers are there: what ends with one of them is only its own connection.
TEST_F(RmaGroupTest, ARankGetsThroughACrowdOfStrangersAndHearsOfAFailure) {
  std::vector<std::unique_ptr<Comm>> comms;
  for (int i = 0; i < 10; ++i) {
    comms.push_back(std::make_unique<Comm>());
    net_.incoming.push_back(comms.back().get());
    ASSERT_TRUE(group_->Progress().ok());
  }
  Greet(&first_, 1);
  EXPECT_EQ(net_.adopted, std::vector<const Comm*>{&first_});
  EXPECT_EQ(std::count(net_.closed.begin(), net_.closed.end(), &first_), 0);
  EXPECT_FALSE(Post(Put(7, 8)).ok());
  ASSERT_EQ(net_.failures.size(), 1u);
  EXPECT_EQ(net_.failures[0].first, &first_);
}

// It asks for more and more, and takes no answer: 64 batches of 64 KiB wait for it.
// Once all ranks are here: the first of a crowd is found after a while, the others one after the other.
TEST_F(RmaGroupTest, ACrowdOfStrangersIsTakenInAtOnceOnceItIsFound) {
  Greet(&first_, 1);
  Greet(&second_, 2);
  std::vector<Comm> crowd(RmaStrangers::kMax);
  for (Comm& one : crowd) net_.incoming.push_back(&one);
  while (net_.incoming.size() == crowd.size()) ASSERT_TRUE(group_->Progress().ok());
  for (size_t i = 1; i < crowd.size(); ++i) ASSERT_TRUE(group_->Progress().ok());
  EXPECT_TRUE(net_.incoming.empty());
}

// Such a caller moves nobody else.
TEST_F(RmaGroupTest, ACallerOfItselfDoesNotKeepTheThreadAway) {
  Greet(&first_, 1);
  net_.incoming.push_back(&second_);
  for (int i = 0; i < 2; ++i) {
    bool done = false;
    ASSERT_TRUE(Post(Put(0, 8)).ok());
    ASSERT_TRUE(group_->Test(request_, &done).ok());
    EXPECT_TRUE(done);
    bool moved = false;
    (void)group_->Tick(&moved);
  }
  EXPECT_TRUE(net_.incoming.empty());
}

TEST_F(RmaGroupTest, TheThreadLeavesAGroupThatNcclMovesAlone) {
  bool moved = false;
  (void)group_->Tick(&moved);
  ASSERT_TRUE(group_->Progress().ok());
  net_.incoming.push_back(&first_);
  (void)group_->Tick(&moved);
  EXPECT_EQ(net_.incoming.size(), 1u);
  (void)group_->Tick(&moved);
  EXPECT_TRUE(net_.incoming.empty());
}

TEST_F(RmaGroupTest, NobodyIsWaitedForOnceTheLibraryEnds) {
  net_.dials = false;
  const std::atomic<bool> over{true};
  EXPECT_FALSE(group_->Reach(over).ok());
  EXPECT_TRUE(group_->failed());
}

TEST_F(RmaGroupTest, AnswersThatARankDoesNotTakeAreBounded) {
  Greet(&first_, 1);
  net_.busy = 1 << 30;
  RmaRecord get;
  get.kind = RmaKind::kGet;
  get.region = static_cast<uint32_t>(window_ - 1);
  get.bytes = 1000;
  std::string batch;
  while (batch.size() + get.Space() <= kRmaBatchBytes) batch += RecordBytes(get);
  uint64_t answered = 0;
  for (; !group_->failed() && answered < (uint64_t{1} << 30); answered += batch.size()) {
    net_.DeliverTo(&first_, batch);
    (void)group_->Progress();
  }
  EXPECT_TRUE(group_->failed());
  EXPECT_LE(answered, 65 * kRmaBatchBytes * 2) << "bytes of gets, each with an answer of at most twice its size";
  ASSERT_FALSE(net_.failures.empty());
  EXPECT_NE(net_.failures[0].second.message().find("more gets than NCCL has under way"), absl::string_view::npos);
}

// What the network says when the first operation goes at once is not this rank's fault.
TEST_F(RmaGroupTest, AConnectionThatBreaksUnderAPutIsNotBlamedOnThisRank) {
  ASSERT_TRUE(Post(Put(1, 8)).ok());
  ASSERT_TRUE(group_->Progress().ok());
  net_.peer_gone = true;
  EXPECT_FALSE(Post(Put(1, 8)).ok());
  ASSERT_EQ(net_.failures.size(), 1u);
  EXPECT_EQ(net_.failures[0].second.message(), "rank 0 of 3: the peer has closed");
}

TEST_F(RmaGroupTest, MoreThanOneGibIsRefused) { EXPECT_FALSE(Post(Put(1, (size_t{1} << 30) + 1)).ok()); }

TEST_F(RmaGroupTest, ConnectionsHaveTheTrafficClassOfTheContexts) {
  group_->OpenContexts(1, 40);
  ASSERT_TRUE(Post(Put(1, 8)).ok());
  ASSERT_TRUE(group_->Progress().ok());
  ASSERT_EQ(net_.dialled.size(), 1u);
  EXPECT_EQ(net_.dialled[0].traffic_class, 40);
}

TEST_F(RmaGroupTest, AnEndTakesTheLingerOnceHoweverManyWaits) {
  ASSERT_TRUE(Post(Put(1, 8)).ok());
  ASSERT_TRUE(group_->Progress().ok());
  net_.busy = 1 << 30;
  RmaContexts* const others = group_->OpenContexts(1, kNoTrafficClass);
  ASSERT_TRUE(group_->Post(others, 0, Put(1, 8), &request_).ok());
  group_->CloseContexts(others);
  EXPECT_TRUE(group_->failed()) << "it waited, and gave up";
}

TEST_F(RmaGroupTest, APeerThatIsDoneEndsNothingYet) {
  Greet(&first_, 1);
  Bye(&first_, true);
  OutlastGrace();
  EXPECT_TRUE(group_->Progress().ok());
  EXPECT_FALSE(Post(Put(1, 8)).ok()) << "it reaches nobody";
}

TEST_F(RmaGroupTest, AnAbortedPeerEndsAGroupWithWindows) {
  Greet(&first_, 1);
  Bye(&first_, false);
  OutlastGrace();
  EXPECT_FALSE(group_->Progress().ok());
}

TEST_F(RmaGroupTest, ByeTellsWhetherWindowsWereOpenWhenTheContextsEnded) {
  for (const bool open : {true, false}) {
    listen_.listen = &net_.listen_comm;
    net_.sent.clear();
    group_->Close();
    Open();
    ASSERT_TRUE(Post(Put(1, 8)).ok());
    ASSERT_TRUE(group_->Progress().ok());
    if (!open) group_->Deregister(window_);
    group_->CloseContexts(contexts_);
    group_->Deregister(window_);
    net_.sent.clear();
    group_->Close();
    ASSERT_FALSE(net_.sent.empty());
    RmaRecord bye;
    absl::string_view payload;
    absl::string_view batch = net_.sent.back().second;
    ASSERT_EQ(ReadRmaRecord(&batch, &bye, &payload), nullptr);
    EXPECT_EQ(bye.kind, RmaKind::kBye);
    EXPECT_EQ(bye.bytes, open ? 0u : 1u);
  }
}

TEST(GroupPeersTest, WhoIsDoneInOrderIsMissedAfterThePeerTimeout) {
  GroupPeers peers(3, 1000 * kMs);
  EXPECT_TRUE(peers.all_here());
  peers.Closed(2, true, 5 * kMs);
  EXPECT_TRUE(peers.gone(2));
  EXPECT_FALSE(peers.all_here());
  EXPECT_TRUE(peers.Check(1000 * kMs).ok());
  EXPECT_FALSE(peers.Check(1005 * kMs).ok());
}

}  // namespace
}  // namespace tcpx
