// LL and LL128 through the real shared library in every mode: a second thread stands for the GPU, polls the flags
// inside the receive buffers, and lets the next receive in as soon as it has seen a whole message, whatever `test`
// says. No line may show its flag before its data.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "bench/flag_lines.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/log_capture.h"

namespace tcpx {
namespace {

using bench::LineKind;
using bench::Seen;

constexpr size_t kSlots = 8;           // NCCL_STEPS
constexpr size_t kSlotBytes = 614400;  // a step of LL128

struct FlagMessage {
  LineKind kind;
  size_t bytes;
  uint64_t flag;
};

// Sizes around what NCCL sends, short and long mixed.
std::vector<FlagMessage> Messages(uint64_t seed, size_t count) {
  Rng rng(seed);
  std::vector<FlagMessage> messages;
  // Kinds change rarely: each takes the memory over from the other.
  for (size_t i = 0; i < count; ++i) {
    const LineKind kind = i * 2 < count ? LineKind::kLl : LineKind::kLl128;
    const size_t line = LineBytes(kind);
    const size_t bytes_max = kind == LineKind::kLl ? 64 << 10 : rng.OneIn(4) ? kSlotBytes : 96 << 10;
    messages.push_back({kind, rng.Between(1, bytes_max / line) * line, i + 1});
  }
  return messages;
}

class FlagsTest : public RulesTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the race is the point here, and the thread sanitizer would report it";
#endif
    RulesTest::SetUp();
    if (plugin_ != nullptr) MakePair(&pair_);
  }

  Pair pair_;
};

class GpuThread {
 public:
  GpuThread(const std::vector<FlagMessage>* messages, std::vector<std::vector<uint64_t>>* slots)
      : messages_(messages), slots_(slots), thread_([this] { Run(); }) {}
  ~GpuThread() {
    stop_.store(true);
    thread_.join();
  }

  size_t consumed() const { return consumed_.load(std::memory_order_acquire); }
  bool wrong() const { return wrong_.load(); }

 private:
  void Run() {
    for (size_t i = 0; i < messages_->size(); ++i) {
      const FlagMessage& message = (*messages_)[i];
      const void* data = (*slots_)[i % kSlots].data();
      size_t line = 0;
      Seen seen = Seen::kNotYet;
      while (seen == Seen::kNotYet) {
        if (stop_.load(std::memory_order_relaxed)) return;
        seen = PollLines(message.kind, message.flag, data, message.bytes, &line);
        if (seen == Seen::kNotYet) sched_yield();
      }
      if (seen == Seen::kWrong) {
        wrong_.store(true);
        return;
      }
      consumed_.store(i + 1, std::memory_order_release);
    }
  }

  const std::vector<FlagMessage>* const messages_;
  std::vector<std::vector<uint64_t>>* const slots_;
  std::atomic<size_t> consumed_{0};
  std::atomic<bool> wrong_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST_P(FlagsTest, NoLineShowsItsFlagBeforeItsData) {
  const std::vector<FlagMessage> messages = Messages(TestSeed(), 400 / static_cast<size_t>(TimeScale()));
  std::vector<std::vector<uint64_t>> in(kSlots, std::vector<uint64_t>(kSlotBytes / 8)), out = in;
  GpuThread gpu(&messages, &in);
  std::deque<void*> sends, receives;
  size_t sent = 0, posted = 0;
  Deadline deadline;
  while ((gpu.consumed() < messages.size() || !sends.empty() || !receives.empty()) && !HasFailure()) {
    ASSERT_FALSE(gpu.wrong()) << "message " << gpu.consumed();
    bool moved = false;
    if (sent < messages.size() && sends.size() < kSlots) {
      FillLines(messages[sent].kind, messages[sent].flag, out[sent % kSlots].data(), messages[sent].bytes);
      void* request = nullptr;
      ASSERT_EQ(ncclSuccess, net().Isend(pair_.send, out[sent % kSlots].data(), messages[sent].bytes, 0, nullptr,
                                         nullptr, &request));
      if (request != nullptr) sends.push_back(request), ++sent, moved = true;
    }
    if (posted < messages.size() && posted < gpu.consumed() + kSlots) {
      void* data = in[posted % kSlots].data();
      size_t capacity = kSlotBytes;
      int tag = 0;
      void* request = reinterpret_cast<void*>(static_cast<intptr_t>(NCCL_NET_OPTIONAL_RECV_COMPLETION));
      ASSERT_EQ(ncclSuccess, net().Irecv(pair_.receive, 1, &data, &capacity, &tag, nullptr, nullptr, &request));
      if (request != nullptr) receives.push_back(request), ++posted, moved = true;
    }
    for (std::deque<void*>* requests : {&sends, &receives}) {
      int done = 0, size = 0;
      if (requests->empty()) continue;
      ASSERT_EQ(ncclSuccess, net().Test(requests->front(), &done, &size)) << CapturedLog();
      if (done != 0) requests->pop_front(), moved = true;
    }
    if (moved) deadline.Restart();
    ASSERT_TRUE(moved || deadline.Yield()) << gpu.consumed() << " seen, " << posted << " posted, " << sent << " sent";
  }
  EXPECT_EQ(messages.size(), gpu.consumed());
}

INSTANTIATE_TEST_SUITE_P(EveryMode, FlagsTest, ::testing::ValuesIn(AllModes({AF_INET})), ModeName);

}  // namespace
}  // namespace tcpx
