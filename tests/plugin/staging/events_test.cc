// Profiler events of staged messages: what each request moved on each lane is rebuilt from the events alone. A staged
// message reaches its lanes in parts, each a request of its own to them, and lands a while after they have counted it:
// the events must still be the message's, no more than one for each lane, and stop before it is reported done.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/plugin/profiler/consumer.h"
#include "tests/plugin/staging/staging_fixture.h"
#include "tests/support/pattern.h"

namespace tcpx {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kSlotBytes = 64 * kKiB;  // staging_fixture.h
constexpr int kIllegalAddress = 700;      // CUDA_ERROR_ILLEGAL_ADDRESS

// One end of a message.
struct End {
  bool on_gpu = false;
  std::unique_ptr<Buffer> buffer;
  void* handle = nullptr;
  void* parent = nullptr;  // null: not profiled
  void* request = nullptr;
  bool posted = false;
  bool over = false;
};

struct Message {
  size_t bytes = 0;
  End send, receive;
};

class EventsTest : public StagingTest {
 protected:
  void SetUp() override {
    // NCCL 2.26, which does not know updates, is among the releases that take v10.
    Consumer::Reset(GetParam().version == 10 ? Consumer::Reading::kStopOnly : Consumer::Reading::kUpdates);
    StagingTest::SetUp();
    if (plugin_ != nullptr && !lab_->is_fake()) GTEST_SKIP() << "a real driver's copies can't be slowed down";
  }

  void TearDown() override {
    StagingTest::TearDown();
    EXPECT_EQ(Consumer::Faults(), std::vector<std::string>());
  }

  void Prepare(void* comm, size_t bytes, bool on_gpu, bool profiled, End* end) {
    end->on_gpu = on_gpu;
    end->buffer = std::make_unique<Buffer>(lab_.get(), on_gpu, bytes + 1);
    end->handle = Register(comm, end->buffer.get());
    end->parent = profiled ? Consumer::NewParent() : nullptr;
  }

  ncclResult_t Send(Message* message) {
    Consumer::Inside inside;
    End& end = message->send;
    const ncclResult_t result =
        net().Isend(pair_.send, end.buffer->data(), message->bytes, 0, end.handle, end.parent, &end.request);
    end.posted = end.request != nullptr;
    return result;
  }

  ncclResult_t Receive(Message* message) {
    Consumer::Inside inside;
    End& end = message->receive;
    void* data = end.buffer->data();
    int tag = 0;
    const ncclResult_t result =
        net().Irecv(pair_.receive, 1, &data, &message->bytes, &tag, &end.handle, &end.parent, &end.request);
    end.posted = end.request != nullptr;
    return result;
  }

  ncclResult_t Test(End* end, int* size) {
    if (!end->posted || end->over) return ncclSuccess;
    int done = 0;
    Consumer::Inside inside;
    const ncclResult_t result = net().Test(end->request, &done, size);
    end->over = done != 0;
    if (end->over && end->parent != nullptr) Consumer::Over(end->parent);  // Finds fault with open events.
    return result;
  }

  // Moves all, several at a time, oldest tested first as NCCL does, and checks each one's bytes.
  void Move(std::vector<Message>* messages) {
    constexpr size_t kWindow = 4;
    const Pattern pattern(TestSeed(), 3 * kMiB);
    for (size_t i = 0; i < messages->size(); ++i) {
      (*messages)[i].send.buffer->Write(0, pattern.Bytes(i), (*messages)[i].bytes);
    }
    size_t sent = 0, received = 0, over = 0;
    Deadline deadline;
    while (over < messages->size()) {
      if (received < std::min(messages->size(), over + kWindow)) {
        ASSERT_EQ(ncclSuccess, Receive(&(*messages)[received])) << LogText();
        if ((*messages)[received].receive.posted) ++received;
      }
      if (sent < std::min(messages->size(), over + kWindow)) {
        ASSERT_EQ(ncclSuccess, Send(&(*messages)[sent])) << LogText();
        if ((*messages)[sent].send.posted) ++sent;
      }
      Message& oldest = (*messages)[over];
      int size = static_cast<int>(oldest.bytes);
      ASSERT_EQ(ncclSuccess, Test(&oldest.send, nullptr)) << LogText();
      ASSERT_EQ(ncclSuccess, Test(&oldest.receive, &size)) << LogText();
      if (oldest.send.over && oldest.receive.over) {
        const std::vector<char> landed = oldest.receive.buffer->Read();
        ASSERT_EQ(oldest.bytes, static_cast<size_t>(size));
        ASSERT_EQ("", pattern.Check(over, landed.data(), oldest.bytes)) << "message " << over;
        ++over;
        deadline.Restart();
      }
      ASSERT_TRUE(deadline.Yield()) << over << " of " << messages->size() << " messages in time";
    }
  }

  void DeregAll(std::vector<Message>* messages) {
    for (Message& message : *messages) {
      EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, message.send.handle));
      EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, message.receive.handle));
    }
  }

  // Posts both ends of a message of many slots and tests them until the profiler of one has heard of some bytes and
  // many are still to come. Where NCCL does not know updates it hears of no bytes before all were counted.
  void GetUnderWay(bool send_profiled, bool receive_profiled) {
    message_.bytes = 6 * kMiB;
    Prepare(pair_.send, message_.bytes, true, send_profiled, &message_.send);
    Prepare(pair_.receive, message_.bytes, true, receive_profiled, &message_.receive);
    lab_->fake().delays(TestSeed(), 4000);
    const uint64_t before = lab_->counts().copies;
    const auto under_way = [&] {
      return lab_->counts().copies >= before + 12 && (Consumer::Calls() > 0 || GetParam().version == 10);
    };
    Deadline deadline;
    while (!under_way()) {
      if (!message_.receive.posted) {
        ASSERT_EQ(ncclSuccess, Receive(&message_));
      }
      if (!message_.send.posted) {
        ASSERT_EQ(ncclSuccess, Send(&message_));
      }
      ASSERT_EQ(ncclSuccess, Test(&message_.send, nullptr)) << LogText();
      ASSERT_EQ(ncclSuccess, Test(&message_.receive, nullptr)) << LogText();
      ASSERT_TRUE(deadline.Yield());
    }
    ASSERT_FALSE(message_.send.over);
    ASSERT_FALSE(message_.receive.over);
  }

  // Tests what is open until its error has come, then once more.
  void AwaitErrors() {
    Deadline deadline;
    for (End* end : {&message_.send, &message_.receive}) {
      while (!end->over && Test(end, nullptr) == ncclSuccess) ASSERT_TRUE(deadline.Yield());
      (void)Test(end, nullptr);
    }
  }

  // They outlive what the plugin has in flight: it ends in TearDown.
  Message message_;
  std::vector<Message> messages_;
};

// Sizes by number, so that no two messages in flight are as long: bytes reported of the wrong one are seen.
std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (size_t round = 0; round < (TimeScale() > 1 ? 1 : 2); ++round) {
    for (size_t bytes : {size_t{0}, size_t{1}, 4 * kKiB, kSlotBytes - 7, kSlotBytes, kSlotBytes + 1, 5 * kSlotBytes,
                         300 * kKiB, kMiB, 2 * kMiB + 13}) {
      sizes.push_back(bytes == 0 ? 0 : bytes + round);
    }
  }
  return sizes;
}

void ExpectRebuilt(const Message& message) {
  SCOPED_TRACE(absl::StrCat(message.bytes, " bytes, from ", message.send.on_gpu ? "GPU" : "host", " to ",
                            message.receive.on_gpu ? "GPU" : "host"));
  for (const Consumer::Event& event : Consumer::Events(message.send.parent)) EXPECT_EQ(event.op, 0);
  for (const Consumer::Event& event : Consumer::Events(message.receive.parent)) EXPECT_EQ(event.op, 1);
  const auto sent = Consumer::Moved(message.send.parent);
  const auto received = Consumer::Moved(message.receive.parent);
  EXPECT_FALSE(sent.empty());
  EXPECT_EQ(sent.size(), Consumer::Events(message.send.parent).size()) << "two events for one lane";
  EXPECT_EQ(received.size(), Consumer::Events(message.receive.parent).size()) << "two events for one lane";
  EXPECT_EQ(Sum(sent), message.bytes);
  EXPECT_EQ(ByPort(sent, false), ByPort(received, true));
}

TEST_P(EventsTest, BytesPerRequestAndLaneAreRebuiltFromEvents) {
  lab_->fake().delays(TestSeed(), 300);
  for (size_t bytes : Sizes()) {
    for (int kinds = 1; kinds < 4; ++kinds) {  // Host to host is profiler_test's.
      messages_.emplace_back();
      messages_.back().bytes = bytes;
      Prepare(pair_.send, bytes, (kinds & 1) != 0, true, &messages_.back().send);
      Prepare(pair_.receive, bytes, (kinds & 2) != 0, true, &messages_.back().receive);
    }
  }
  ASSERT_NO_FATAL_FAILURE(Move(&messages_));
  std::set<int> lanes;
  for (const Message& message : messages_) {
    if (HasFailure()) return;
    ExpectRebuilt(message);
    for (const auto& [fd, bytes] : Consumer::Moved(message.send.parent)) lanes.insert(fd);
  }
  // Small ones take lane 0, large ones any of the others.
  EXPECT_GE(lanes.size(), GetParam().lanes == 1 ? 1u : 2u);
  EXPECT_LE(lanes.size(), static_cast<size_t>(GetParam().lanes));
  const size_t calls = Consumer::Calls();
  DeregAll(&messages_);
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  EXPECT_EQ(calls, Consumer::Calls());
}

// Some requests are profiled, their neighbours are not; each end decides for itself.
TEST_P(EventsTest, NullParentsHaveNoEventsAndTakeNone) {
  lab_->fake().delays(TestSeed(), 300);
  for (size_t i = 0; i < 24; ++i) {
    messages_.emplace_back();
    messages_.back().bytes = i % 4 == 3 ? 100 + i : (1 + i % 5) * kSlotBytes + i;
    Prepare(pair_.send, messages_.back().bytes, true, i % 2 == 0, &messages_.back().send);
    Prepare(pair_.receive, messages_.back().bytes, true, i % 3 == 0, &messages_.back().receive);
  }
  ASSERT_NO_FATAL_FAILURE(Move(&messages_));
  for (const Message& message : messages_) {
    for (const End* end : {&message.send, &message.receive}) {
      if (end->parent != nullptr) {
        EXPECT_EQ(message.bytes, Sum(Consumer::Moved(end->parent)));
      }
    }
  }
  DeregAll(&messages_);
}

TEST_P(EventsTest, EachMemberOfAGroupHasItsOwn) {
  constexpr int kMembers = 4;
  messages_.resize(kMembers);
  void *data[kMembers], *handles[kMembers], *parents[kMembers];
  size_t sizes[kMembers];
  int tags[kMembers];
  for (int i = 0; i < kMembers; ++i) {
    messages_[i].bytes = static_cast<size_t>(i + 1) * 100000;
    Prepare(pair_.send, messages_[i].bytes, i != 1, true, &messages_[i].send);
    Prepare(pair_.receive, messages_[i].bytes, i != 2, true, &messages_[i].receive);
    data[i] = messages_[i].receive.buffer->data();
    handles[i] = messages_[i].receive.handle;
    parents[i] = messages_[i].receive.parent;
    sizes[i] = messages_[i].bytes;
    tags[i] = i;
  }
  void* receive = nullptr;
  Deadline deadline;
  while (receive == nullptr) {
    Consumer::Inside inside;
    ASSERT_EQ(ncclSuccess, net().Irecv(pair_.receive, kMembers, data, sizes, tags, handles, parents, &receive));
    ASSERT_TRUE(deadline.Yield());
  }
  int received = 0, sent = 0;
  while (received == 0 || sent < kMembers) {
    for (int i = kMembers - 1; i >= 0; --i) {
      End& end = messages_[i].send;
      if (!end.posted) {
        Consumer::Inside inside;
        ASSERT_EQ(ncclSuccess, net().Isend(pair_.send, end.buffer->data(), messages_[i].bytes, i, end.handle,
                                           end.parent, &end.request));
        end.posted = end.request != nullptr;
      } else if (!end.over) {
        ASSERT_EQ(ncclSuccess, Test(&end, nullptr)) << LogText();
        if (end.over) ++sent;
      }
    }
    if (received == 0) {
      Consumer::Inside inside;
      ASSERT_EQ(ncclSuccess, net().Test(receive, &received, nullptr)) << LogText();
    }
    ASSERT_TRUE(deadline.Yield());
  }
  for (const Message& member : messages_) {
    Consumer::Over(member.receive.parent);
    ExpectRebuilt(member);
  }
}

// NCCL may free what a profiler's parent lies in as soon as the memory of its request is gone.
TEST_P(EventsTest, NothingIsReportedOfASendAfterDeregOfItsMemory) {
  ASSERT_NO_FATAL_FAILURE(GetUnderWay(true, false));
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.send, message_.send.handle));
  const size_t calls = Consumer::Calls();
  ASSERT_NO_FATAL_FAILURE(AwaitErrors());
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  EXPECT_EQ(calls, Consumer::Calls());
}

TEST_P(EventsTest, NothingIsReportedOfAReceiveAfterDeregOfItsMemory) {
  ASSERT_NO_FATAL_FAILURE(GetUnderWay(false, true));
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.receive, message_.receive.handle));
  const size_t calls = Consumer::Calls();
  ASSERT_NO_FATAL_FAILURE(AwaitErrors());
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  EXPECT_EQ(calls, Consumer::Calls());
}

TEST_P(EventsTest, EventsStopBeforeTheErrorOfACopy) {
  ASSERT_NO_FATAL_FAILURE(GetUnderWay(true, true));
  lab_->fake().fail("cuEventQuery", 1, kIllegalAddress);
  ASSERT_NO_FATAL_FAILURE(AwaitErrors());
  for (End* end : {&message_.send, &message_.receive}) {
    if (!end->over) Consumer::Over(end->parent);  // Finds fault with open events.
    EXPECT_LE(Sum(Consumer::Moved(end->parent)), message_.bytes);
  }
  const size_t calls = Consumer::Calls();
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  EXPECT_EQ(calls, Consumer::Calls());
}

// Profiled: v10 and up. What the versions tell apart, profiler_test looks at in every mode.
std::vector<Mode> ProfiledModes() {
  std::vector<Mode> modes;
  for (Mode& mode : StagingModes()) {
    mode.profiler = Consumer::Callback();
    for (int version : {10, 11, 12}) {
      mode.version = version;
      if (version == 12 || mode.lanes == 1) modes.push_back(mode);
    }
  }
  return modes;
}

INSTANTIATE_TEST_SUITE_P(EveryMode, EventsTest, ::testing::ValuesIn(ProfiledModes()), ModeName);

}  // namespace
}  // namespace tcpx
