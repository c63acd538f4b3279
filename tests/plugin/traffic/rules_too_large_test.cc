// A message larger than the posted receive: the user's mistake. Both ends get an error, nobody hangs, nothing is
// written beyond the receive, and other connections go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"

namespace tcpx {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

struct Sizes {
  size_t message;
  size_t receive;
};

class TooLargeTest : public RulesTest {
 protected:
  // Or the failure would take the communicator's other connections with it.
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment["TCPX_SPREAD_ERRORS"] = "0";
    return settings;
  }

  // Sends one message that fits, so that the connection is known to work.
  void Exchange(const Ends& pair) {
    char out[100], in[100] = {};
    std::fill(std::begin(out), std::end(out), 'x');
    auto receive = PostReceive(&net(), pair.receive, in, sizeof(in));
    ASSERT_TRUE(receive.ok()) << receive.status();
    auto send = PostSend(&net(), pair.send, out, sizeof(out));
    ASSERT_TRUE(send.ok()) << send.status();
    absl::Status status = WaitFor(&net(), *send);
    ASSERT_TRUE(status.ok()) << status;
    status = WaitFor(&net(), *receive);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(std::equal(std::begin(out), std::end(out), std::begin(in)));
  }

  // Tests `request` until the plugin says something other than "not yet". `others`: what has to be driven meanwhile.
  ncclResult_t TestUntilSettled(void* request, void* other, int* done) {
    Deadline deadline;
    ncclResult_t result = ncclSuccess;
    bool other_settled = other == nullptr;
    do {
      result = net().Test(request, done, nullptr);
      int other_done = 0;
      if (!other_settled) other_settled = net().Test(other, &other_done, nullptr) != ncclSuccess || other_done != 0;
    } while (result == ncclSuccess && *done == 0 && deadline.Yield());
    other_settled_ = other_settled;
    return result;
  }

  // Posts until there is a request or an error: a call gives neither while another thread holds the connection.
  ncclResult_t ReceiveOrError(void* comm, char* to, size_t capacity, void** request) {
    const Deadline deadline;
    void* data = to;
    int tag = 0;
    ncclResult_t result = ncclSuccess;
    do {
      result = net().Irecv(comm, 1, &data, &capacity, &tag, nullptr, nullptr, request);
    } while (result == ncclSuccess && *request == nullptr && deadline.Yield());
    EXPECT_EQ(result == ncclSuccess, *request != nullptr) << result << LogText();
    return result;
  }

  ncclResult_t SendOrError(void* comm, char* data, size_t bytes, void** request) {
    const Deadline deadline;
    ncclResult_t result = ncclSuccess;
    do {
      result = net().Isend(comm, data, bytes, 0, nullptr, nullptr, request);
    } while (result == ncclSuccess && *request == nullptr && deadline.Yield());
    EXPECT_EQ(result == ncclSuccess, *request != nullptr) << result << LogText();
    return result;
  }

  // Sends until the plugin refuses.
  ncclResult_t SendUntilRefused(void* comm) {
    static const char byte = 'x';
    Deadline deadline;
    for (;;) {
      void* request = nullptr;
      ncclResult_t result = net().Isend(comm, const_cast<char*>(&byte), 1, 0, nullptr, nullptr, &request);
      if (result != ncclSuccess) return result;
      int done = 0;
      while (request != nullptr && done == 0) {
        result = net().Test(request, &done, nullptr);
        if (result != ncclSuccess) return result;
        if (!deadline.Yield()) return ncclSuccess;
      }
      if (!deadline.Yield()) return ncclSuccess;
    }
  }

  // Lines of the receiving end that name both sizes.
  int ReceiverWarnings(const Sizes& sizes) {
    int count = 0;
    for (const std::string& line : LogLines(NCCL_LOG_WARN)) {
      const bool names_both = line.find(absl::StrCat(sizes.message, " bytes")) != std::string::npos &&
                              line.find(absl::StrCat(sizes.receive, " bytes")) != std::string::npos;
      if (names_both && line.find(" receive device ") != std::string::npos) ++count;
    }
    return count;
  }

  void Overfill(const Sizes& sizes);

  bool other_settled_ = false;
};

void TooLargeTest::Overfill(const Sizes& sizes) {
  Ends pair, bystander;
  ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  ASSERT_NO_FATAL_FAILURE(MakePair(&bystander));
  ASSERT_NO_FATAL_FAILURE(Exchange(pair));
  const std::vector<char> out(sizes.message, 'm');
  GuardedBuffer in(sizes.message);
  in.Arm(sizes.message);
  auto receive = PostReceive(&net(), pair.receive, in.data(), sizes.receive);
  ASSERT_TRUE(receive.ok()) << receive.status();
  auto send = PostSend(&net(), pair.send, out.data(), out.size());
  ASSERT_TRUE(send.ok()) << send.status();

  int done = 0;
  EXPECT_EQ(ncclInvalidUsage, TestUntilSettled(*receive, *send, &done)) << LogText();
  EXPECT_EQ(0, done);
  EXPECT_EQ(1, ReceiverWarnings(sizes)) << LogText();
  EXPECT_EQ("", in.Check(sizes.receive, sizes.message));
  // A send may have been done before: then the next call says it.
  if (!other_settled_) {
    const ncclResult_t result = TestUntilSettled(*send, nullptr, &done);
    EXPECT_TRUE(result == ncclRemoteError || done != 0) << "test of the send: " << result << "\n" << LogText();
  }
  EXPECT_EQ(ncclRemoteError, SendUntilRefused(pair.send)) << LogText();
  // The error sticks.
  done = 0;
  EXPECT_EQ(ncclInvalidUsage, TestUntilSettled(*receive, nullptr, &done));
  void* request = nullptr;
  EXPECT_EQ(ncclInvalidUsage, ReceiveOrError(pair.receive, in.data(), sizes.message, &request));
  EXPECT_EQ(1, ReceiverWarnings(sizes)) << LogText();
  EXPECT_TRUE(plugin_->Close(pair).ok());
  Exchange(bystander);
}

TEST_P(TooLargeTest, ExpressByOneByte) { Overfill({1001, 1000}); }

TEST_P(TooLargeTest, ExpressIntoNothing) { Overfill({1, 0}); }

TEST_P(TooLargeTest, BulkByOneByte) { Overfill({2 * kMiB + 1, 2 * kMiB}); }

TEST_P(TooLargeTest, BulkIntoAnExpressReceive) { Overfill({8 * kMiB, 100}); }

// Many younger receives and sends are posted as well: every one of them ends with the error. A pool may find the
// message too large while they are still being posted: then the post says it.
TEST_P(TooLargeTest, EveryPendingRequestEnds) {
  constexpr size_t kMessages = 8, kTooSmall = 3;
  Ends pair;
  ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  std::vector<char> out(kMiB, 'm');
  std::vector<std::vector<char>> in(kMessages, std::vector<char>(kMiB));
  std::vector<void*> receives, sends;
  for (size_t i = 0; i < kMessages; ++i) {
    const size_t capacity = i == kTooSmall ? kMiB - 1 : kMiB;
    void* request = nullptr;
    const ncclResult_t received = ReceiveOrError(pair.receive, in[i].data(), capacity, &request);
    ASSERT_TRUE(received == ncclSuccess || (received == ncclInvalidUsage && i > kTooSmall)) << received << LogText();
    if (received == ncclSuccess) receives.push_back(request);
    request = nullptr;
    const ncclResult_t sent = SendOrError(pair.send, out.data(), kMiB, &request);
    ASSERT_TRUE(sent == ncclSuccess || (sent == ncclRemoteError && i > kTooSmall)) << sent << LogText();
    if (sent == ncclSuccess) sends.push_back(request);
  }
  Deadline deadline;
  std::vector<ncclResult_t> results(receives.size(), ncclSuccess);
  size_t settled = 0, sends_settled = 0;
  while (settled < receives.size() || sends_settled < sends.size()) {
    int done = 0;
    if (settled < receives.size()) {
      results[settled] = net().Test(receives[settled], &done, nullptr);
      if (results[settled] != ncclSuccess || done != 0) ++settled;
    }
    done = 0;
    if (sends_settled < sends.size()) {
      const ncclResult_t result = net().Test(sends[sends_settled], &done, nullptr);
      if (result != ncclSuccess) {
        EXPECT_EQ(ncclRemoteError, result) << LogText();
      }
      if (result != ncclSuccess || done != 0) ++sends_settled;
    }
    ASSERT_TRUE(deadline.Yield()) << settled << " receives, " << sends_settled << " sends are over";
  }
  EXPECT_EQ(ncclInvalidUsage, results[kTooSmall]);
  EXPECT_EQ(1, ReceiverWarnings({kMiB, kMiB - 1})) << LogText();
  // The buffers belong to the plugin until then.
  EXPECT_TRUE(plugin_->Close(pair).ok());
}

INSTANTIATE_TEST_SUITE_P(EveryMode, TooLargeTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
