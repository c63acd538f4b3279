// LL and LL128 into GPU memory: a second thread stands for the GPU, polls the flags inside the receive buffers, and lets
// the next receive in as soon as it has seen a whole message. The stand-in driver writes the ends of lines first, so
// that a plain copy shows each line's flag before its data.
#include <atomic>
#include <deque>
#include <thread>

#include "bench/flag_lines.h"
#include "tests/plugin/staging/staging_fixture.h"

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

std::vector<FlagMessage> Messages(uint64_t seed, size_t count) {
  Rng rng(seed);
  std::vector<FlagMessage> messages;
  for (size_t i = 0; i < count; ++i) {
    const LineKind kind = i * 2 < count ? LineKind::kLl : LineKind::kLl128;
    const size_t line = LineBytes(kind);
    const size_t bytes_max = kind == LineKind::kLl ? 64 << 10 : rng.OneIn(4) ? kSlotBytes : 96 << 10;
    messages.push_back({kind, rng.Between(1, bytes_max / line) * line, i + 1});
  }
  return messages;
}

// Polls one buffer after the other by the mapping that `views` are.
class GpuThread {
 public:
  GpuThread(const std::vector<FlagMessage>* messages, std::vector<const void*> views)
      : messages_(messages), views_(std::move(views)), thread_([this] { Run(); }) {}
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
      size_t line = 0;
      Seen seen = Seen::kNotYet;
      while (seen == Seen::kNotYet) {
        if (stop_.load(std::memory_order_relaxed)) return;
        seen = PollLines(message.kind, message.flag, views_[i % kSlots], message.bytes, &line);
        if (seen == Seen::kNotYet) sched_yield();
      }
      wrong_.store(seen == Seen::kWrong);
      if (wrong_.load()) return;
      consumed_.store(i + 1, std::memory_order_release);
    }
  }

  const std::vector<FlagMessage>* const messages_;
  const std::vector<const void*> views_;
  std::atomic<size_t> consumed_{0};
  std::atomic<bool> wrong_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class FlagsTest : public StagingTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the race is the point here, and the thread sanitizer would report it";
#endif
    StagingTest::SetUp();
    if (plugin_ != nullptr && !lab_->is_fake()) GTEST_SKIP() << "a host thread can't poll a real GPU's memory";
  }

  // `hint`: receives say that they are LL's or LL128's.
  void Run(bool hint) {
    const std::vector<FlagMessage> messages = Messages(TestSeed(), 240 / static_cast<size_t>(TimeScale()));
    Buffer in(lab_.get(), true, kSlots * kSlotBytes);
    in.Fill(0);
    std::vector<uint64_t> out(kSlots * kSlotBytes / 8);
    void* const handle = Register(pair_.receive, &in);
    std::vector<const void*> views;
    for (size_t i = 0; i < kSlots; ++i) {
      views.push_back(lab_->fake().view(reinterpret_cast<uint64_t>(in.data()) + i * kSlotBytes));
    }
    GpuThread gpu(&messages, views);
    std::deque<void*> sends, receives;
    size_t sent = 0, posted = 0;
    Deadline deadline;
    while ((gpu.consumed() < messages.size() || !sends.empty() || !receives.empty()) && !HasFailure()) {
      ASSERT_FALSE(gpu.wrong()) << "message " << gpu.consumed();
      bool moved = false;
      if (sent < messages.size() && sends.size() < kSlots) {
        uint64_t* const data = &out[sent % kSlots * kSlotBytes / 8];
        void* request = nullptr;
        FillLines(messages[sent].kind, messages[sent].flag, data, messages[sent].bytes);
        ASSERT_EQ(ncclSuccess, TrySend(data, messages[sent].bytes, nullptr, &request));
        if (request != nullptr) sends.push_back(request), ++sent, moved = true;
      }
      if (posted < messages.size() && posted < gpu.consumed() + kSlots) {
        const intptr_t preset = hint ? NCCL_NET_OPTIONAL_RECV_COMPLETION : 0;
        void* request = reinterpret_cast<void*>(preset);
        ASSERT_EQ(ncclSuccess, TryReceive(in.data() + posted % kSlots * kSlotBytes, kSlotBytes, handle, &request));
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
    EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, handle));
  }
};

TEST_P(FlagsTest, NoLineShowsItsFlagBeforeItsData) { Run(true); }

// The user has forbidden NCCL the hint: then every single receive is copied with the same care.
TEST_P(FlagsTest, NorWithoutTheHint) {
  Start({{"NCCL_NET_OPTIONAL_RECV_COMPLETION", "0"}});
  Run(false);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, FlagsTest, ::testing::ValuesIn(StagingModes()), ModeName);

}  // namespace
}  // namespace tcpx
