// Grouped receives in every mode: members matched by tag, sends that wait for their credit, and what becomes of errors.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/plugin/traffic/group_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"

namespace tcpx {
namespace {

constexpr int kRequests = 32;  // NCCL_NET_MAX_REQUESTS
constexpr int kMembersMax = 8;
constexpr size_t kKiB = 1024;

TEST_P(GroupTest, TheDeviceSaysEight) {
  ncclNetProperties_v12_t props;
  ASSERT_EQ(ncclSuccess, net().GetProperties(0, &props));
  EXPECT_EQ(8, props.maxRecvs);
}

TEST_P(GroupTest, ASendWaitsUntilItsTagIsOpen) {
  ExpectClosed(7);
  Group group = Receive({{7, 10}});
  ExpectClosed(8);
  void* send = Send(7, "seven", 5);
  ExpectClosed(7);
  Finish({send}, {&group});
  ExpectText(group, 0, "seven");
}

TEST_P(GroupTest, MembersAreMatchedByTagInAnyOrder) {
  Group group = Receive({{1, 10}, {2, 0}, {3, 300 * kKiB}, {-4, 20}});
  const std::string big(200 * kKiB, 'b');
  std::vector<void*> sends = {Send(3, big.data(), big.size()), Send(-4, "four", 4)};
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(Done(group.request, group.sizes.data()));
  sends.push_back(Send(2, "", 0));
  sends.push_back(Send(1, "one", 3));
  Finish(sends, {&group});
  ExpectText(group, 0, "one");
  ExpectText(group, 1, "");
  ExpectText(group, 2, big);
  ExpectText(group, 3, "four");
}

TEST_P(GroupTest, ThreeEmptyMessages) {
  Group group = Receive({{1, 0}, {2, 10}, {3, 10}});
  Finish({Send(2, "", 0), Send(3, "", 0), Send(1, "", 0)}, {&group});
  for (size_t i = 0; i < 3; ++i) ExpectText(group, i, "");
}

TEST_P(GroupTest, OneTagTwoStepsAheadOfTheOthers) {
  const std::string long_text(150 * kKiB, 'l');
  Group groups[] = {Receive({{1, 10}, {2, 10}}), Receive({{1, 200 * kKiB}, {2, 10}}), Receive({{2, 10}, {1, 10}})};
  std::vector<void*> sends = {Send(1, "first", 5)};
  // Its second and third message find no room before the other tag's first and second.
  ExpectClosed(1);
  sends.push_back(Send(2, "FIRST", 5));
  sends.push_back(Send(1, long_text.data(), long_text.size()));
  ExpectClosed(1);
  sends.push_back(Send(2, "SECOND", 6));
  sends.push_back(Send(1, "third", 5));
  ExpectClosed(1);
  sends.push_back(Send(2, "THIRD", 5));
  Finish(sends, {&groups[0], &groups[1], &groups[2]});
  ExpectText(groups[0], 0, "first");
  ExpectText(groups[0], 1, "FIRST");
  ExpectText(groups[1], 0, long_text);
  ExpectText(groups[1], 1, "SECOND");
  ExpectText(groups[2], 0, "THIRD");
  ExpectText(groups[2], 1, "third");
}

// The caller repeats isend and tests no older send all the while.
TEST_P(GroupTest, ASendThatIsRefusedMovesTheOnesBefore) {
  Group group = Receive({{1, 10}, {2, 10}, {3, 3000 * kKiB}});
  const std::string big(3000 * kKiB, 'b');
  std::vector<void*> sends = {Send(1, "one", 3), Send(2, "two", 3), Send(3, big.data(), big.size())};
  Deadline deadline;
  while (!Done(group.request, group.sizes.data())) {
    ASSERT_EQ(nullptr, TrySend(4, "?", 1));
    ASSERT_TRUE(deadline.Yield());
  }
  Finish(sends, {});
}

TEST_P(GroupTest, OneTagTwice) {
  Group group = Receive({{5, 10}, {6, 10}, {5, 10}});
  std::vector<void*> sends = {Send(5, "a", 1), Send(5, "bb", 2)};
  ExpectClosed(5);
  sends.push_back(Send(6, "ccc", 3));
  Finish(sends, {&group});
  ExpectText(group, 0, "a");
  ExpectText(group, 1, "ccc");
  ExpectText(group, 2, "bb");
}

TEST_P(GroupTest, GroupsShrink) {
  Group groups[] = {Receive({{1, 10}, {2, 10}, {3, 10}}), Receive({{1, 10}, {3, 10}}), Receive({{3, 10}})};
  std::vector<void*> sends = {Send(3, "c", 1), Send(2, "b", 1), Send(1, "a", 1),
                              Send(3, "C", 1), Send(1, "A", 1), Send(3, "+", 1)};
  ExpectClosed(3);
  Finish(sends, {&groups[0], &groups[1], &groups[2]});
  ExpectText(groups[0], 0, "a");
  ExpectText(groups[0], 1, "b");
  ExpectText(groups[0], 2, "c");
  ExpectText(groups[1], 0, "A");
  ExpectText(groups[1], 1, "C");
  ExpectText(groups[2], 0, "+");
}

// All that may be in flight: 32 groups of 8, and as many sends. Tested in any order, some long, some short, some empty.
TEST_P(GroupTest, AllSlotsAtOnceAndInAnyOrder) {
  const Pattern pattern(TestSeed(), 100 * kKiB);
  Rng rng(TestSeed());
  const auto bytes_of = [](int group, int member) {
    constexpr size_t kSizes[] = {0, 1, 1000, 70 * kKiB, 4 * kKiB, 100, 90 * kKiB, 64 * kKiB};
    return kSizes[static_cast<size_t>(group + member) % 8];
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<Group> groups;
    std::vector<void*> sends;
    for (int g = 0; g < kRequests; ++g) {
      std::vector<Member> members;
      for (int m = 0; m < kMembersMax; ++m) members.push_back({m, bytes_of(g, m) + rng.Between(0, 100)});
      groups.push_back(Receive(members));
      ASSERT_NE(nullptr, groups.back().request) << "group " << g;
    }
    Group one_more;
    ASSERT_EQ(ncclSuccess, TryReceive({{0, 1}}, &one_more));
    EXPECT_EQ(nullptr, one_more.request) << "a 33rd group found room";
    for (int g = 0; g < kRequests; ++g) {
      for (int m = kMembersMax; m-- > 0;) {
        sends.push_back(Send(m, pattern.Bytes(static_cast<uint64_t>(g * kMembersMax + m)), bytes_of(g, m)));
      }
    }
    EXPECT_EQ(nullptr, TrySend(0, "?", 1)) << "a 257th send found room";
    std::vector<int> open(kRequests);
    for (int g = 0; g < kRequests; ++g) open[static_cast<size_t>(g)] = g;
    Deadline deadline;
    while (!(open.empty() && sends.empty()) && !HasFailure()) {
      if (!sends.empty()) {
        const auto send = sends.begin() + static_cast<ptrdiff_t>(rng.Next() % sends.size());
        if (Done(*send)) sends.erase(send);
      }
      if (!open.empty()) {
        const auto at = open.begin() + static_cast<ptrdiff_t>(rng.Next() % open.size());
        Group& group = groups[static_cast<size_t>(*at)];
        if (Done(group.request, group.sizes.data())) {
          for (int m = 0; m < kMembersMax; ++m) {
            const size_t bytes = bytes_of(*at, m);
            const GuardedBuffer& buffer = *group.buffers[static_cast<size_t>(m)];
            EXPECT_EQ(static_cast<int>(bytes), group.sizes[static_cast<size_t>(m)]);
            EXPECT_EQ("", pattern.Check(static_cast<uint64_t>(*at * kMembersMax + m), buffer.data(), bytes));
            EXPECT_EQ("", buffer.Check(bytes, buffer.bytes_max()));
          }
          open.erase(at);
        }
      }
      ASSERT_TRUE(deadline.Yield()) << open.size() << " groups and " << sends.size() << " sends are left";
    }
  }
}

TEST_P(GroupTest, NineMembersAreRefused) {
  Group group;
  ncclResult_t nine = ncclSuccess;
  const Deadline deadline;
  do {
    nine = TryReceive(std::vector<Member>(9, {1, 1}), &group);
  } while (nine == ncclSuccess && group.request == nullptr && deadline.Yield());
  EXPECT_EQ(ncclInvalidArgument, nine);
  EXPECT_EQ(nullptr, group.request);
  Group good = Receive({{1, 1}});
  Finish({Send(1, "x", 1)}, {&good});
}

TEST_P(GroupTest, AMemberThatIsTooLargeIsTheUsersMistake) {
  Group group = Receive({{1, 100}, {2, 100}});
  const std::string text(101, 'x');
  (void)Send(2, text.data(), text.size());
  Deadline deadline;
  int done = 0;
  ncclResult_t result = ncclSuccess;
  while ((result = net().Test(group.request, &done, group.sizes.data())) == ncclSuccess && done == 0) {
    ASSERT_TRUE(deadline.Yield());
  }
  EXPECT_EQ(ncclInvalidUsage, result);
  EXPECT_EQ("", group.buffers[0]->Check(0, 100));
  // The sender, which waits for a credit, learns of it too.
  void* request = nullptr;
  while ((result = net().Isend(pair_.send, const_cast<char*>(text.data()), 1, 3, nullptr, nullptr, &request)) ==
         ncclSuccess) {
    ASSERT_TRUE(deadline.Yield());
  }
  EXPECT_EQ(ncclRemoteError, result);
}

TEST_P(GroupTest, AReceiverThatGoesEndsTheWaitForACredit) {
  Group group = Receive({{1, 10}});
  ExpectClosed(2);
  ASSERT_TRUE(plugin_->Close({nullptr, pair_.receive}).ok());
  Deadline deadline;
  ncclResult_t result = ncclSuccess;
  void* request = nullptr;
  char byte = 'x';
  while ((result = net().Isend(pair_.send, &byte, 1, 2, nullptr, nullptr, &request)) == ncclSuccess) {
    ASSERT_EQ(nullptr, request);
    ASSERT_TRUE(deadline.Yield()) << LogText();
  }
  EXPECT_EQ(ncclRemoteError, result);
}

TEST_P(GroupTest, ASenderThatGoesLeavesAGroupUnfinished) {
  Group whole = Receive({{1, 10}}), half = Receive({{1, 10}, {2, 10}});
  Finish({Send(1, "whole", 5), Send(1, "half", 4)}, {&whole});
  ASSERT_TRUE(plugin_->Close({pair_.send, nullptr}).ok());
  Deadline deadline;
  int done = 0;
  ncclResult_t result = ncclSuccess;
  while ((result = net().Test(half.request, &done, half.sizes.data())) == ncclSuccess && done == 0) {
    ASSERT_TRUE(deadline.Yield());
  }
  EXPECT_EQ(ncclRemoteError, result);
  EXPECT_EQ(0, done);
}

// Only a receive of one buffer may be reported early (NCCL 2.24.3 and later).
TEST_P(GroupTest, TheOptionalHintCountsForOneMemberOnly) {
  void* const preset = reinterpret_cast<void*>(static_cast<intptr_t>(NCCL_NET_OPTIONAL_RECV_COMPLETION));
  Group pair_of = Receive({{1, 10}, {2, 10}}, preset);
  Group single = Receive({{1, 10}}, preset);
  Group last = Receive({{1, 10}}, preset);
  for (int i = 0; i < 50; ++i) ASSERT_FALSE(Done(pair_of.request, pair_of.sizes.data()));
  EXPECT_TRUE(DoneInTime(&single));
  EXPECT_FALSE(Done(last.request, last.sizes.data()));
  Finish({Send(1, "a", 1), Send(2, "b", 1), Send(1, "c", 1), Send(1, "d", 1)}, {&pair_of, &last});
  ExpectText(pair_of, 0, "a");
  ExpectText(pair_of, 1, "b");
  EXPECT_EQ("c", std::string(single.buffers[0]->data(), 1));
  ExpectText(last, 0, "d");
}

TEST_P(GroupTest, DeregOfAMembersMemoryResetsTheConnection) {
  std::vector<char> in(200, '?');
  void* handles[2] = {};
  ASSERT_EQ(ncclSuccess, net().RegMr(pair_.receive, &in[0], 100, NCCL_PTR_HOST, &handles[0]));
  ASSERT_EQ(ncclSuccess, net().RegMr(pair_.receive, &in[100], 100, NCCL_PTR_HOST, &handles[1]));
  void* data[] = {&in[0], &in[100]};
  size_t capacities[] = {100, 100};
  int tags[] = {1, 2};
  void* request = nullptr;
  const Deadline deadline;
  do {
    ASSERT_EQ(ncclSuccess, net().Irecv(pair_.receive, 2, data, capacities, tags, handles, nullptr, &request));
  } while (request == nullptr && deadline.Yield());
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.receive, handles[1]));
  int done = 0;
  ncclResult_t result = ncclSuccess;
  while ((result = net().Test(request, &done, nullptr)) == ncclSuccess && done == 0 && deadline.Yield()) continue;
  EXPECT_EQ(ncclRemoteError, result);
  const std::string text(100, 'x');
  void* send = nullptr;
  for (int i = 0; i < 100; ++i) {
    (void)net().Isend(pair_.send, const_cast<char*>(text.data()), 100, 2, nullptr, nullptr, &send);
    if (send != nullptr) break;
  }
  EXPECT_EQ(200, std::count(in.begin(), in.end(), '?'));
}

INSTANTIATE_TEST_SUITE_P(EveryMode, GroupTest, ::testing::ValuesIn(AllModes()), ModeName);

// Buffers of known size, so that a send can't be taken before anyone receives.
class SmallBuffersGroupTest : public GroupTest {
 protected:
  Mode Settings() const override {
    Mode settings = GroupTest::Settings();
    settings.environment["NCCL_SOCKET_SNDBUF"] = settings.environment["NCCL_SOCKET_RCVBUF"] = "262144";
    return settings;
  }
};

// The receiver has failed, and neither reads nor closes: only the end of its own direction tells.
TEST_P(SmallBuffersGroupTest, AFailedReceiverEndsASendThatIsUnderWay) {
  const std::string large(size_t{32} << 20, 'x');
  Group group = Receive({{1, 100}, {2, large.size()}});
  void* too_large = Send(1, large.data(), 101);
  void* under_way = Send(2, large.data(), large.size());
  Deadline deadline;
  int done = 0;
  while (net().Test(group.request, &done, group.sizes.data()) == ncclSuccess && done == 0) {
    if (too_large != nullptr && (net().Test(too_large, &done, nullptr) != ncclSuccess || done != 0))
      too_large = nullptr;
    ASSERT_TRUE(deadline.Yield());
  }
  ncclResult_t result = ncclSuccess;
  while ((result = net().Test(under_way, &done, nullptr)) == ncclSuccess && done == 0) ASSERT_TRUE(deadline.Yield());
  // Where sockets die (pair.h), the first message may come so late that all of the second has arrived.
  if (done == 0 || getenv("TCPX_TEST_KILL_US") == nullptr) {
    EXPECT_EQ(ncclRemoteError, result);
  }
  ASSERT_TRUE(plugin_->Close(pair_).ok());  // Before its memory goes.
}

INSTANTIATE_TEST_SUITE_P(EveryMode, SmallBuffersGroupTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
