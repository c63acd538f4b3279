// What NCCL does with requests, in every mode: many at once, in any order, sends long before receives and the reverse.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/counted.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"

namespace tcpx {
namespace {

constexpr int kRequests = 32;  // NCCL_NET_MAX_REQUESTS
constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

const Pattern& Bytes() {
  static const Pattern pattern(TestSeed(), 4 * kMiB);
  return pattern;
}

// Messages of one pair that a test has posted and not yet seen done.
class Exchange {
 public:
  Exchange(NetClient* net, const Ends& pair) : net_(net), pair_(pair) {}

  // False exactly when the plugin has no room.
  bool Send(size_t bytes) {
    void* request = nullptr;
    void* data = const_cast<char*>(Bytes().Bytes(sizes_.size()));
    const Deadline deadline;
    do {
      EXPECT_EQ(ncclSuccess, net_->Isend(pair_.send, data, bytes, 0, nullptr, nullptr, &request)) << LogText();
    } while (request == nullptr && Healing(sends_.size()) && deadline.Yield());
    if (request == nullptr) return false;
    sends_.push_back(request);
    sizes_.push_back(bytes);
    return true;
  }

  bool Receive(size_t capacity) {
    auto buffer = std::make_unique<GuardedBuffer>(capacity);
    void* data = buffer->data();
    void* request = nullptr;
    int tag = 0;
    const Deadline deadline;
    do {
      EXPECT_EQ(ncclSuccess, net_->Irecv(pair_.receive, 1, &data, &capacity, &tag, nullptr, nullptr, &request))
          << LogText();
    } while (request == nullptr && Healing(receives_.size()) && deadline.Yield());
    if (request == nullptr) return false;
    receives_.push_back({request, received_++, std::move(buffer)});
    return true;
  }

  // One test of the send (receive) at `index` of those in flight; what is done leaves. True when it was done.
  bool TestSend(size_t index) {
    int done = 0;
    EXPECT_EQ(ncclSuccess, net_->Test(sends_[index], &done, nullptr)) << LogText();
    if (done != 0) sends_.erase(sends_.begin() + static_cast<ptrdiff_t>(index));
    return done != 0;
  }

  bool TestReceive(size_t index) {
    int done = 0;
    int size = -1;
    Posted& posted = receives_[index];
    EXPECT_EQ(ncclSuccess, net_->Test(posted.request, &done, &size)) << LogText();
    if (done == 0) return false;
    EXPECT_LT(posted.message, sizes_.size()) << "received before it was sent";
    EXPECT_EQ(static_cast<int>(sizes_[posted.message]), size);
    const size_t bytes = sizes_[posted.message];
    EXPECT_EQ("", Bytes().Check(posted.message, posted.buffer->data(), bytes));
    EXPECT_EQ("", posted.buffer->Check(bytes, posted.buffer->bytes_max()));
    receives_.erase(receives_.begin() + static_cast<ptrdiff_t>(index));
    return true;
  }

  size_t sends() const { return sends_.size(); }
  size_t receives() const { return receives_.size(); }
  size_t received() const { return received_; }

 private:
  // Sockets die (pair.h), so that housekeeping may be at the connection just now: there is room all the same.
  static bool Healing(size_t in_flight) { return in_flight < kRequests && getenv("TCPX_TEST_KILL_US") != nullptr; }

  struct Posted {
    void* request;
    size_t message;
    std::unique_ptr<GuardedBuffer> buffer;
  };

  NetClient* const net_;
  const Ends pair_;
  std::vector<size_t> sizes_;  // by message
  size_t received_ = 0;
  std::deque<void*> sends_;
  std::deque<Posted> receives_;
};

// Mixed sizes around the express size.
size_t MixedBytes(int i) {
  constexpr size_t kSizes[] = {0, 1, 4 * kKiB, 64 * kKiB, 64 * kKiB + 1, 200 * kKiB, 100, 300 * kKiB};
  return kSizes[i % 8];
}

TEST_P(RulesTest, OneReceiveAtATimeWhileEightSendsRunAhead) {
  constexpr size_t kMessages = 40;
  Ends pair;
  ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  Exchange exchange(&net(), pair);
  Deadline deadline;
  size_t sent = 0;
  while ((exchange.received() < kMessages || exchange.receives() > 0 || exchange.sends() > 0) && !HasFailure()) {
    bool progress = false;
    if (sent < kMessages && exchange.sends() < 8 && exchange.Send(sent % 2 == 0 ? kKiB : 4 * kMiB)) {
      ++sent;
      progress = true;
    }
    // The receive waits until eight sends run ahead of it.
    const bool ahead = exchange.sends() == 8 || sent == kMessages;
    if (exchange.receives() == 0 && exchange.received() < kMessages && ahead) progress |= exchange.Receive(4 * kMiB);
    if (exchange.receives() > 0) progress |= exchange.TestReceive(0);
    if (exchange.sends() > 0) progress |= exchange.TestSend(0);
    if (progress) deadline.Restart();
    ASSERT_TRUE(progress || deadline.Yield()) << "stuck after " << exchange.received() << " receives";
  }
}

TEST_P(RulesTest, ThirtyTwoRequestsAreTestedInAnyOrder) {
  Ends pair;
  ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  Exchange exchange(&net(), pair);
  Rng rng(TestSeed());
  Deadline deadline;
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(exchange.Receive(MixedBytes(i) + rng.Between(0, 100)));
  EXPECT_FALSE(exchange.Receive(kKiB)) << "a 33rd receive found room";
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(exchange.Send(MixedBytes(i)));
  EXPECT_FALSE(exchange.Send(kKiB)) << "a 33rd send found room";
  // One receive and one send are tested until they are done, then the next ones, whatever their state.
  size_t receive = rng.Next(), send = rng.Next();
  while (exchange.sends() + exchange.receives() > 0 && !HasFailure()) {
    if (exchange.receives() > 0 && exchange.TestReceive(receive % exchange.receives())) receive = rng.Next();
    if (exchange.sends() > 0 && exchange.TestSend(send % exchange.sends())) send = rng.Next();
    ASSERT_TRUE(deadline.Yield()) << exchange.sends() << " sends and " << exchange.receives() << " receives are left";
  }
  // All slots are free again.
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(exchange.Receive(kKiB));
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(exchange.Send(kKiB));
  while (exchange.sends() + exchange.receives() > 0 && !HasFailure()) {
    if (exchange.receives() > 0) exchange.TestReceive(0);
    if (exchange.sends() > 0) exchange.TestSend(0);
    ASSERT_TRUE(deadline.Yield());
  }
}

TEST_P(RulesTest, ReceivesLongBeforeSends) {
  Ends pair;
  ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  Exchange exchange(&net(), pair);
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(exchange.Receive(MixedBytes(i)));
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < kRequests; ++i) ASSERT_FALSE(exchange.TestReceive(static_cast<size_t>(i)));
  }
  Deadline deadline;
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(exchange.Send(MixedBytes(i)));
    while (exchange.sends() > 0 && !HasFailure()) {
      exchange.TestSend(0);
      if (exchange.receives() > 0) exchange.TestReceive(0);
      ASSERT_TRUE(deadline.Yield());
    }
  }
  while (exchange.receives() > 0 && !HasFailure()) {
    exchange.TestReceive(0);
    ASSERT_TRUE(deadline.Yield());
  }
}

// Buffers of known size, so that the sends can't all be taken before anyone receives.
class SmallBuffersTest : public RulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment = {{"NCCL_SOCKET_SNDBUF", "262144"}, {"NCCL_SOCKET_RCVBUF", "262144"}};
    return settings;
  }
};

TEST_P(SmallBuffersTest, SendsLongBeforeReceivesForMoreThanAllSocketsHold) {
  Ends pair;
  ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  Exchange exchange(&net(), pair);
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(exchange.Send(i % 4 == 0 ? 100 : 2 * kMiB));
  for (int round = 0; round < 1000 && exchange.sends() > 0; ++round) {
    exchange.TestSend(0);
    sched_yield();
  }
  EXPECT_LT(0u, exchange.sends()) << "the sockets held everything: this test needs more data";
  Deadline deadline;
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(exchange.Receive(2 * kMiB));
    while (exchange.receives() > 0 && !HasFailure()) {
      exchange.TestReceive(0);
      if (exchange.sends() > 0) exchange.TestSend(0);
      ASSERT_TRUE(deadline.Yield());
    }
  }
  while (exchange.sends() > 0 && !HasFailure()) {
    exchange.TestSend(0);
    ASSERT_TRUE(deadline.Yield());
  }
}

// Without the parameter, and without GPU pointers, receives are single and sends eager.
TEST_P(RulesTest, SingleReceivesNeedNoCredits) {
  Ends pair;
  ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  ncclNetProperties_v12_t props;
  ASSERT_EQ(ncclSuccess, net().GetProperties(0, &props));
  EXPECT_EQ(1, props.maxRecvs);
  char out[] = "eager", in[2][10] = {};
  auto send = PostSend(&net(), pair.send, out, 5, 3);
  ASSERT_TRUE(send.ok()) << send.status();
  ASSERT_TRUE(WaitFor(&net(), *send).ok());
  void* data[] = {in[0], in[1]};
  size_t capacities[] = {10, 10};
  int tags[] = {3, 4};
  void* request = nullptr;
  ncclResult_t two = ncclSuccess;
  const Deadline deadline;
  do {
    two = net().Irecv(pair.receive, 2, data, capacities, tags, nullptr, nullptr, &request);
  } while (two == ncclSuccess && request == nullptr && deadline.Yield());
  EXPECT_EQ(ncclInvalidArgument, two);
  auto receive = PostReceive(&net(), pair.receive, in[0], 10, 3);
  ASSERT_TRUE(receive.ok()) << receive.status();
  ASSERT_TRUE(WaitFor(&net(), *receive).ok());
  EXPECT_STREQ("eager", in[0]);
}

TEST_P(RulesTest, RunsInTheModeThatWasAskedFor) {
  Ends pair;
  ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  const std::string log = LogText();
  const Mode& mode = GetParam();
  const std::string expected =
      mode.threads == 0 ? "mode caller-driven" : "mode pool of " + Counted(mode.threads, "progress thread");
  EXPECT_NE(std::string::npos, log.find(expected)) << log;
  if (mode.threads > 0) {
    EXPECT_NE(std::string::npos, log.find("engine " + mode.engine)) << log;
  }
  EXPECT_NE(std::string::npos, log.find(": " + Counted(mode.lanes, "lane") + ", ")) << log;
}

INSTANTIATE_TEST_SUITE_P(EveryMode, RulesTest, ::testing::ValuesIn(AllModes()), ModeName);
INSTANTIATE_TEST_SUITE_P(EveryMode, SmallBuffersTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
