// Profiler events through the real shared library: a consumer rebuilds from them alone how many bytes each request
// moved on each lane. Both ends of every message are profiled, each counts for itself, and they must agree lane by
// lane.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/plugin/profiler/consumer.h"
#include "tests/support/deadline.h"
#include "tests/support/pattern.h"
#include "tests/support/plugin_test.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kBytesMax = 5 * kMiB;

const Pattern& Bytes() {
  static const Pattern pattern(TestSeed(), kBytesMax);
  return pattern;
}

// One message, both ends.
struct Message {
  size_t bytes = 0;
  std::unique_ptr<GuardedBuffer> buffer;
  void* send = nullptr;
  void* receive = nullptr;
  void* send_parent = nullptr;
  void* receive_parent = nullptr;
  int size = -1;
};

class ProfilerTest : public PluginTest {
 protected:
  void Open(Mode settings, Consumer::Reading reading) {
    const std::string reason = settings.ReasonToSkip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    Consumer::Reset(reading);
    settings.profiler = Consumer::Callback();
    OpenPair(settings);
  }

  void TearDown() override {
    if (plugin_ == nullptr) return;
    PluginTest::TearDown();
    EXPECT_EQ(Consumer::Faults(), std::vector<std::string>());
  }

  // False exactly when there is no room.
  bool PostSend(Message* message, void* parent) {
    Consumer::Inside inside;
    void* data = const_cast<char*>(Bytes().Bytes(message->bytes));
    message->send_parent = parent;
    EXPECT_EQ(ncclSuccess, net().Isend(pair_.send, data, message->bytes, 0, nullptr, parent, &message->send));
    return message->send != nullptr;
  }

  bool PostReceive(Message* message, void* parent) {
    Consumer::Inside inside;
    message->buffer = std::make_unique<GuardedBuffer>(message->bytes + 10);
    message->receive_parent = parent;
    void* data = message->buffer->data();
    size_t capacity = message->bytes + 10;
    int tag = 0;
    EXPECT_EQ(ncclSuccess, net().Irecv(pair_.receive, 1, &data, &capacity, &tag, nullptr, &parent, &message->receive));
    return message->receive != nullptr;
  }

  // True when the request is done; it is null then.
  bool Test(void** request, void* parent, int* size) {
    if (*request == nullptr) return true;
    int done = 0;
    {
      Consumer::Inside inside;
      EXPECT_EQ(ncclSuccess, net().Test(*request, &done, size)) << LogText();
    }
    if (done == 0) return false;
    *request = nullptr;
    if (parent != nullptr) Consumer::Over(parent);
    return true;
  }

  // Moves messages of `sizes`, up to four at a time, oldest tested first as NCCL does.
  std::vector<Message> Move(const std::vector<size_t>& sizes, bool with_parents = true) {
    std::vector<Message> messages(sizes.size());
    size_t posted = 0, over = 0;
    Deadline deadline;
    while (over < messages.size() && !HasFailure()) {
      if (posted < messages.size() && posted < over + 4) {
        Message& message = messages[posted++];
        message.bytes = sizes[posted - 1];
        // Housekeeping may be at the connection just now, to give it another socket.
        void* const parents[] = {with_parents ? Consumer::NewParent() : nullptr,
                                 with_parents ? Consumer::NewParent() : nullptr};
        while (!PostReceive(&message, parents[0]) && deadline.Yield()) continue;
        while (!PostSend(&message, parents[1]) && deadline.Yield()) continue;
        EXPECT_TRUE(message.receive != nullptr && message.send != nullptr);
      }
      Message& oldest = messages[over];
      int size = -1;
      const bool sent = Test(&oldest.send, oldest.send_parent, &size);
      const bool received = Test(&oldest.receive, oldest.receive_parent, &oldest.size);
      if (sent && received) {
        EXPECT_EQ(static_cast<int>(oldest.bytes), oldest.size);
        EXPECT_EQ("", Bytes().Check(oldest.bytes, oldest.buffer->data(), oldest.bytes));
        ++over;
      }
      if (!deadline.Yield()) {
        ADD_FAILURE() << over << " of " << messages.size() << " messages in time";
        break;
      }
    }
    return messages;
  }
};

void ExpectRebuilt(const Message& message) {
  SCOPED_TRACE(absl::StrCat(message.bytes, " bytes"));
  for (const Consumer::Event& event : Consumer::Events(message.send_parent)) EXPECT_EQ(event.op, 0);
  for (const Consumer::Event& event : Consumer::Events(message.receive_parent)) EXPECT_EQ(event.op, 1);
  const auto sent = Consumer::Moved(message.send_parent);
  const auto received = Consumer::Moved(message.receive_parent);
  EXPECT_FALSE(sent.empty());
  EXPECT_EQ(sent.size(), Consumer::Events(message.send_parent).size()) << "two events for one lane";
  EXPECT_EQ(Sum(sent), message.bytes);
  EXPECT_EQ(ByPort(sent, false), ByPort(received, true));
}

std::vector<size_t> MixedSizes() {
  std::vector<size_t> sizes;
  for (int round = 0; round < 4; ++round) {
    for (size_t bytes : {size_t{0}, size_t{1}, 4 * kKiB, 64 * kKiB, 64 * kKiB + 1, 300 * kKiB, kMiB, 5 * kMiB}) {
      sizes.push_back(bytes);
    }
  }
  return sizes;
}

class EveryModeTest : public ProfilerTest, public ::testing::WithParamInterface<std::tuple<Mode, int>> {
 protected:
  void SetUp() override {
    Mode settings = std::get<0>(GetParam());
    settings.version = std::get<1>(GetParam());
    // NCCL 2.26, which does not know updates, is among the releases that take v10.
    Open(settings, settings.version == 10 ? Consumer::Reading::kStopOnly : Consumer::Reading::kUpdates);
  }
};

TEST_P(EveryModeTest, Gotcha24_BytesPerRequestAndLaneAreRebuiltFromEvents) {
  for (const Message& message : Move(MixedSizes())) {
    if (HasFailure()) return;
    ExpectRebuilt(message);
  }
}

std::string ParamName(const ::testing::TestParamInfo<std::tuple<Mode, int>>& info) {
  Mode settings = std::get<0>(info.param);
  settings.version = std::get<1>(info.param);
  return settings.Describe('_');
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryModeTest,
                         ::testing::Combine(::testing::ValuesIn(AllModes()), ::testing::Values(10, 11, 12)), ParamName);

class ModesWithPoolsTest : public ProfilerTest, public ::testing::WithParamInterface<Mode> {};

std::vector<Mode> CallerAndPool() {
  Mode caller;
  caller.lanes = 4;
  Mode pool = caller;
  pool.threads = 2;
  return {caller, pool};
}

INSTANTIATE_TEST_SUITE_P(Modes, ModesWithPoolsTest, ::testing::ValuesIn(CallerAndPool()), ModeName);

TEST_P(ModesWithPoolsTest, NullParentsHaveNoEvents) {
  Open(GetParam(), Consumer::Reading::kUpdates);
  Move(MixedSizes(), false);
  EXPECT_EQ(Consumer::Calls(), 0u);
}

// A profiler that does not look at network events leaves the handle null, which must not come back.
TEST_P(ModesWithPoolsTest, Gotcha24_UnwantedEventsAreOnlyStarted) {
  Open(GetParam(), Consumer::Reading::kNotWanted);
  size_t events = 0;
  for (const Message& message : Move(MixedSizes())) {
    events += Consumer::Events(message.send_parent).size() + Consumer::Events(message.receive_parent).size();
  }
  EXPECT_EQ(Consumer::Calls(), events);
}

TEST_P(ModesWithPoolsTest, MoreLanesThanEventsShareTheLast) {
  Mode settings = GetParam();
  settings.lanes = 20;
  settings.environment = {{"TCPX_CHUNK_BYTES", "64K"}, {"TCPX_CHUNK_BYTES_MIN", "64K"}};
  Open(settings, Consumer::Reading::kUpdates);
  for (const Message& message : Move(MixedSizes())) {
    if (HasFailure()) return;
    for (void* parent : {message.send_parent, message.receive_parent}) {
      EXPECT_EQ(Sum(Consumer::Moved(parent)), message.bytes);
      EXPECT_LE(Consumer::Events(parent).size(), 8u);
    }
    auto sent = Consumer::Moved(message.send_parent);
    auto received = Consumer::Moved(message.receive_parent);
    EXPECT_EQ(sent[-1], received[-1]);
    sent.erase(-1);
    received.erase(-1);
    EXPECT_EQ(ByPort(sent, false), ByPort(received, true));
  }
}

// Sends that the receiver does not take, then the end of the connection.
class BrokenTest : public ModesWithPoolsTest {
 protected:
  // Buffers of known size, so that the sockets can't take all.
  static Mode Settings() {
    Mode settings = GetParam();
    settings.environment = {{"NCCL_SOCKET_SNDBUF", "262144"}, {"NCCL_SOCKET_RCVBUF", "262144"}};
    return settings;
  }

  void FillUp() {
    Deadline deadline;
    for (int i = 0; i < 8; ++i) {
      sends_.emplace_back();
      sends_.back().bytes = kBytesMax;
      void* const parent = Consumer::NewParent();
      // Housekeeping may be at the connection just now.
      while (!PostSend(&sends_.back(), parent)) ASSERT_TRUE(deadline.Yield());
    }
    while (Consumer::Events(sends_[0].send_parent).empty() || Consumer::Events(sends_[0].send_parent)[0].bytes == 0) {
      Test(&sends_[0].send, nullptr, nullptr);
      ASSERT_TRUE(deadline.Yield());
    }
  }

  // Tests the youngest, which can't be done, until its error comes.
  void AwaitError() {
    Deadline deadline;
    for (;;) {
      Consumer::Inside inside;
      int done = 0;
      if (net().Test(sends_.back().send, &done, nullptr) != ncclSuccess) return;
      ASSERT_EQ(0, done);
      ASSERT_TRUE(deadline.Yield());
    }
  }

  // Tests what FillUp has left, once each.
  void TestAll() {
    Consumer::Inside inside;
    int done = 0;
    for (const Message& message : sends_) {
      if (message.send != nullptr) net().Test(message.send, &done, nullptr);
    }
  }

  std::deque<Message> sends_;
};

INSTANTIATE_TEST_SUITE_P(Modes, BrokenTest, ::testing::ValuesIn(CallerAndPool()), ModeName);

TEST_P(BrokenTest, EventsOfAFailedRequestStopBeforeItsError) {
  ASSERT_NO_FATAL_FAILURE(Open(Settings(), Consumer::Reading::kUpdates));
  ASSERT_NO_FATAL_FAILURE(FillUp());
  ASSERT_TRUE(plugin_->Close({nullptr, pair_.receive}).ok());
  ASSERT_NO_FATAL_FAILURE(AwaitError());
  TestAll();
  for (const Message& message : sends_) Consumer::Over(message.send_parent);  // Finds fault with open events.
  EXPECT_FALSE(Consumer::Events(sends_[0].send_parent).empty());
}

TEST_P(BrokenTest, NothingIsReportedAfterDeregOfMemoryInFlight) {
  ASSERT_NO_FATAL_FAILURE(Open(Settings(), Consumer::Reading::kUpdates));
  void* region = nullptr;
  ASSERT_EQ(ncclSuccess,
            net().RegMr(pair_.send, const_cast<char*>(Bytes().Bytes(kBytesMax)), kBytesMax, NCCL_PTR_HOST, &region));
  ASSERT_NO_FATAL_FAILURE(FillUp());
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.send, region));
  const size_t calls = Consumer::Calls();
  ASSERT_NO_FATAL_FAILURE(AwaitError());
  TestAll();
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  EXPECT_EQ(Consumer::Calls(), calls);
}

TEST_P(BrokenTest, NothingIsReportedByClose) {
  ASSERT_NO_FATAL_FAILURE(Open(Settings(), Consumer::Reading::kUpdates));
  ASSERT_NO_FATAL_FAILURE(FillUp());
  const size_t calls = Consumer::Calls();
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  EXPECT_EQ(Consumer::Calls(), calls);
}

}  // namespace
}  // namespace tcpx
