// Seeded random traffic of grouped and optional receives over the real shared library, in every mode; every byte
// checked. Each tag is a sender of its own that knows nothing of the others. TCPX_TEST_LONG=1 runs fifty times as many
// groups.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

constexpr int kTags = 8;
constexpr size_t kBytesMax = 1 << 20;
constexpr size_t kRequests = 32;  // NCCL_NET_MAX_REQUESTS
// Receives that were reported early, and are not checked yet.
constexpr size_t kUncheckedMax = 24;

struct Message {
  uint64_t id = 0;  // names its bytes
  int tag = 0;
  size_t bytes = 0;
  size_t capacity = 0;
};

struct Plan {
  Plan(uint64_t seed, size_t group_count, uint64_t members_max) : pattern(seed, kBytesMax), per_tag(kTags) {
    Rng rng(seed);
    uint64_t id = 0;
    for (size_t g = 0; g < group_count; ++g) {
      std::vector<Message> group;
      for (uint64_t n = rng.OneIn(3) ? 1 : rng.Between(1, members_max); n > 0; --n) {
        Message message;
        message.id = id++;
        message.tag = static_cast<int>(rng.Between(0, members_max == 1 ? 0 : kTags - 1));
        message.bytes = Bytes(&rng);
        message.capacity = message.bytes + (rng.OneIn(2) ? 0 : rng.Between(1, 500));
        group.push_back(message);
        per_tag[static_cast<size_t>(message.tag)].push_back(message);
      }
      optional.push_back(group.size() == 1 && !rng.OneIn(4));
      groups.push_back(group);
    }
  }

  static size_t Bytes(Rng* rng) {
    const uint64_t kind = rng->Between(1, 100);
    if (kind <= 15) return 0;
    if (kind <= 60) return rng->Between(1, 4096);
    if (kind <= 65) return rng->Between((64 << 10) - 2, (64 << 10) + 2);  // around the express size
    return kind <= 97 ? rng->Between(1, 128 << 10) : rng->Between(1, kBytesMax);
  }

  const Pattern pattern;
  std::vector<std::vector<Message>> groups;
  std::vector<bool> optional;                 // by group
  std::vector<std::vector<Message>> per_tag;  // in the order of the groups
};

class Senders {
 public:
  Senders(NetClient* net, void* comm, const Plan* plan, uint64_t seed)
      : net_(net), comm_(comm), plan_(plan), rng_(seed), tags_(kTags) {
    for (const auto& messages : plan->per_tag) left_ += messages.size();
  }

  bool finished() const { return left_ == 0; }

  // One look at one sender. *moved: something was posted or done.
  absl::Status Step(bool* moved) {
    const size_t tag = rng_.Next() % kTags;
    Sender& sender = tags_[tag];
    const std::vector<Message>& messages = plan_->per_tag[tag];
    if (sender.next < messages.size() && sender.in_flight.size() < kRequests) {
      const Message& message = messages[sender.next];
      std::vector<char> data(message.bytes + 1);  // never null
      std::memcpy(data.data(), plan_->pattern.Bytes(message.id), message.bytes);
      void* request = &sender;  // Stale, as in NCCL.
      absl::Status status = PluginStatus(
          net_->Isend(comm_, data.data(), message.bytes, message.tag, nullptr, nullptr, &request), "isend");
      if (!status.ok()) return status;
      if (request != nullptr) {
        sender.in_flight.push_back({request, std::move(data)});
        ++sender.next;
        *moved = true;
      }
    }
    if (sender.in_flight.empty()) return absl::OkStatus();
    int done = 0, size = -1;
    InFlight& oldest = sender.in_flight.front();
    absl::Status status = PluginStatus(net_->Test(oldest.request, &done, &size), "test of a send");
    if (!status.ok() || done == 0) return status;
    std::memset(oldest.data.data(), 0x5A, oldest.data.size());  // What the plugin still read would arrive wrong.
    sender.in_flight.pop_front();
    --left_;
    *moved = true;
    return absl::OkStatus();
  }

 private:
  struct InFlight {
    void* request;
    std::vector<char> data;
  };
  struct Sender {
    size_t next = 0;
    std::deque<InFlight> in_flight;
  };

  NetClient* const net_;
  void* const comm_;
  const Plan* const plan_;
  Rng rng_;
  std::vector<Sender> tags_;
  size_t left_ = 0;
};

class Receiver {
 public:
  Receiver(NetClient* net, void* comm, const Plan* plan, uint64_t seed)
      : net_(net), comm_(comm), plan_(plan), rng_(seed) {}

  bool finished() const { return next_ == plan_->groups.size() && in_flight_.empty(); }

  absl::Status Step(bool* moved) {
    absl::Status status;
    if (rng_.OneIn(2)) status = Post(moved);
    return status.ok() ? TestOldest(moved) : status;
  }

 private:
  struct InFlight {
    void* request;
    size_t group;
    std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  };

  absl::Status Post(bool* moved) {
    if (next_ == plan_->groups.size() || in_flight_.size() == kRequests || unchecked_.size() >= kUncheckedMax) {
      return absl::OkStatus();
    }
    InFlight posted;
    posted.group = next_;
    std::vector<void*> data;
    std::vector<size_t> capacities;
    std::vector<int> tags;
    for (const Message& message : plan_->groups[next_]) {
      posted.buffers.push_back(std::make_unique<GuardedBuffer>(message.capacity));
      data.push_back(posted.buffers.back()->data());
      capacities.push_back(message.capacity);
      tags.push_back(message.tag);
    }
    posted.request = nullptr;
    if (plan_->optional[next_]) {
      posted.request = reinterpret_cast<void*>(static_cast<intptr_t>(NCCL_NET_OPTIONAL_RECV_COMPLETION));
    }
    absl::Status status = PluginStatus(net_->Irecv(comm_, static_cast<int>(data.size()), data.data(), capacities.data(),
                                                   tags.data(), nullptr, nullptr, &posted.request),
                                       "irecv");
    if (!status.ok() || posted.request == nullptr) return status;
    in_flight_.push_back(std::move(posted));
    ++next_;
    *moved = true;
    return absl::OkStatus();
  }

  absl::Status TestOldest(bool* moved) {
    if (in_flight_.empty()) return absl::OkStatus();
    InFlight& oldest = in_flight_.front();
    int done = 0;
    std::vector<int> sizes(oldest.buffers.size(), 0);
    absl::Status status = PluginStatus(net_->Test(oldest.request, &done, sizes.data()), "test of a receive");
    if (!status.ok() || done == 0) return status;
    *moved = true;
    const bool optional = plan_->optional[oldest.group];
    for (size_t i = 0; i < sizes.size() && !optional; ++i) {
      if (sizes[i] != static_cast<int>(plan_->groups[oldest.group][i].bytes)) {
        return absl::DataLossError(absl::StrCat("group ", oldest.group, " member ", i, ": test said ", sizes[i]));
      }
    }
    if (!optional) status = Check(oldest);
    if (optional) unchecked_.push_back(std::move(oldest));
    in_flight_.pop_front();
    // The youngest is reported only when all others have landed: now everything is there.
    if (in_flight_.empty()) {
      for (const InFlight& early : unchecked_) status.Update(Check(early));
      unchecked_.clear();
    }
    return status;
  }

  absl::Status Check(const InFlight& landed) const {
    for (size_t i = 0; i < landed.buffers.size(); ++i) {
      const Message& message = plan_->groups[landed.group][i];
      std::string wrong = plan_->pattern.Check(message.id, landed.buffers[i]->data(), message.bytes);
      if (wrong.empty()) wrong = landed.buffers[i]->Check(message.bytes, message.capacity);
      if (!wrong.empty()) return absl::DataLossError(absl::StrCat("group ", landed.group, " member ", i, ": ", wrong));
    }
    return absl::OkStatus();
  }

  NetClient* const net_;
  void* const comm_;
  const Plan* const plan_;
  Rng rng_;
  size_t next_ = 0;
  std::deque<InFlight> in_flight_;
  std::vector<InFlight> unchecked_;
};

// Steps `end` until it has finished, or `stop` says that the other has failed.
template <class End>
absl::Status RunEnd(End* end, std::atomic<bool>* stop, const char* who) {
  Deadline deadline;
  absl::Status status;
  while (status.ok() && !end->finished() && !stop->load()) {
    bool moved = false;
    status = end->Step(&moved);
    if (moved) deadline.Restart();
    if (status.ok() && !moved && !deadline.Yield())
      status = absl::DeadlineExceededError(absl::StrCat(who, " is stuck"));
  }
  if (!status.ok()) stop->store(true);
  return status;
}

absl::Status RunOnTwoThreads(NetClient* net, const Ends& pair, const Plan& plan) {
  Senders senders(net, pair.send, &plan, TestSeed() + 1);
  Receiver receiver(net, pair.receive, &plan, TestSeed() + 2);
  std::atomic<bool> stop{false};
  absl::Status sent;
  std::thread thread([&] { sent = RunEnd(&senders, &stop, "the sender"); });
  absl::Status received = RunEnd(&receiver, &stop, "the receiver");
  thread.join();
  return received.ok() ? sent : received;
}

absl::Status RunOnOneThread(NetClient* net, const Ends& pair, const Plan& plan) {
  Senders senders(net, pair.send, &plan, TestSeed() + 1);
  Receiver receiver(net, pair.receive, &plan, TestSeed() + 2);
  Rng rng(TestSeed() + 3);
  Deadline deadline;
  absl::Status status;
  while (status.ok() && !(senders.finished() && receiver.finished())) {
    bool moved = false;
    for (uint64_t i = rng.Between(0, 12); i > 0 && status.ok(); --i) status = senders.Step(&moved);
    for (uint64_t i = rng.Between(0, 3); i > 0 && status.ok(); --i) status = receiver.Step(&moved);
    if (moved) deadline.Restart();
    if (status.ok() && !moved && !deadline.Yield()) status = absl::DeadlineExceededError("both ends are stuck");
  }
  return status;
}

class RandomGroupsTest : public RulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment = {{"TCPX_MAX_RECVS", "8"}};
    return settings;
  }

  void Run(absl::Status (*runner)(NetClient*, const Ends&, const Plan&), uint64_t members_max) {
    Ends pair;
    ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
    const size_t groups = (LongRun() ? 20000 : 400) / static_cast<size_t>(TimeScale());
    const Plan plan(TestSeed(), groups, members_max);
    const absl::Status status = runner(&net(), pair, plan);
    EXPECT_TRUE(status.ok()) << status;
  }
};

TEST_P(RandomGroupsTest, BothEndsOnOneThread) { Run(&RunOnOneThread, 8); }

TEST_P(RandomGroupsTest, AThreadForEachEnd) { Run(&RunOnTwoThreads, 8); }

INSTANTIATE_TEST_SUITE_P(EveryMode, RandomGroupsTest, ::testing::ValuesIn(AllModes()), ModeName);

// Single receives, most of them optional, and eager sends.
class RandomOptionalTest : public RandomGroupsTest {
 protected:
  Mode Settings() const override { return GetParam(); }
};

TEST_P(RandomOptionalTest, BothEndsOnOneThread) { Run(&RunOnOneThread, 1); }

TEST_P(RandomOptionalTest, AThreadForEachEnd) { Run(&RunOnTwoThreads, 1); }

INSTANTIATE_TEST_SUITE_P(EveryMode, RandomOptionalTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
