// What waits for the stream of one-sided writes, for how long, and what is remembered of words.
#include "net_socket/gpu/gpu_writer.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/seed.h"
#include "tests/unit/net_socket/gpu/gpu_fixture.h"

namespace tcpx {
namespace {

class GpuWriterTest : public GpuFixture {
 protected:
  void SetUp() override {
    GpuFixture::SetUp();
    memory_ = std::make_unique<GpuBuffer>(gpu_.get(), 4096);
    memory_->Fill(0);
    OpenWriter(kLongNs);
  }
  void TearDown() override {
    if (gpu_ != nullptr) gpu_->fake().hold(0);
    writer_.reset();
    memory_.reset();
    GpuFixture::TearDown();
  }
  void OpenWriter(int64_t patience_ns) {
    writer_.reset();
    OpenPool(patience_ns);
    auto writer = GpuWriter::Open(pool_.get());
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  char* at(size_t offset) { return static_cast<char*>(memory_->data()) + offset; }
  uint64_t* word() { return static_cast<uint64_t*>(gpu_->fake().view(reinterpret_cast<uint64_t>(memory_->data()))); }
  uint64_t Word() { return __atomic_load_n(word(), __ATOMIC_ACQUIRE); }
  absl::Status Add(uint64_t add, bool ours) {
    absl::Status status = writer_->Add(at(0), add, ours);
    return status.ok() ? writer_->Await() : status;
  }
  // Somebody looks at the stream again and again. False: nobody does.
  bool IsAwaited() {
    const uint64_t before = gpu_->counts().queries;
    const Deadline deadline(10);
    while (gpu_->counts().queries < before + 3) {
      if (!deadline.Yield()) return false;
    }
    return true;
  }

  std::unique_ptr<GpuBuffer> memory_;
  std::unique_ptr<GpuWriter> writer_;
};

// In its own thread, until the writer says so.
class Waiter {
 public:
  explicit Waiter(GpuWriter* writer)
      : thread_([this, writer] {
          status_ = writer->Await();
          returned_ = true;
        }) {}
  bool returned() const { return returned_; }
  absl::Status Join() {
    thread_.join();
    return status_;
  }

 private:
  std::atomic<bool> returned_{false};
  absl::Status status_;
  std::thread thread_;
};

TEST_F(GpuWriterTest, AGpuThatCarriesOutNothingIsAwaitedForABoundedTimeOnce) {
  OpenWriter(20 * kMillisecond);
  gpu_->fake().hold(1);
  ASSERT_TRUE(writer_->Add(at(0), 1, false).ok());
  const absl::Status stuck = writer_->Await();
  EXPECT_EQ(stuck.code(), absl::StatusCode::kAborted);
  EXPECT_NE(stuck.message().find("the GPU has not carried out copies"), absl::string_view::npos) << stuck;
  EXPECT_TRUE(writer_->failed());
  EXPECT_FALSE(writer_->Await().ok()) << "at once";
  uint64_t steps = 0;
  EXPECT_FALSE(writer_->Poll(&steps).ok());
  gpu_->fake().hold(0);
  const Deadline deadline;
  while (!writer_->Await().ok()) ASSERT_TRUE(deadline.Yield()) << "it is over now";
}

// What it carries out meanwhile gives it no more time. Additions are written 64 at a time, which takes 30 ms here.
TEST_F(GpuWriterTest, AGpuThatIsTooSlowIsNotAwaitedForLonger) {
  OpenWriter(100 * kMillisecond);
  gpu_->fake().delays(TestSeed(), 1000);
  for (int i = 0; i < 1024; ++i) ASSERT_TRUE(writer_->Add(at(0), 1, false).ok());
  EXPECT_FALSE(writer_->Await().ok());
  gpu_->fake().delays(TestSeed(), 0);
  AwaitStreams();
}

TEST_F(GpuWriterTest, WhatAStuckGpuMayUseIsNotFreed) {
  OpenWriter(20 * kMillisecond);
  bool room = false;
  gpu_->fake().hold(1);
  ASSERT_TRUE(writer_->Put(at(0), "written!", &room).ok());
  writer_.reset();
  const FakeCudaCounts before = gpu_->counts();
  pool_.reset();
  EXPECT_EQ(gpu_->counts().pinned_bytes, before.pinned_bytes);
  EXPECT_EQ(gpu_->counts().streams, before.streams);
  left_ = gpu_->counts();
  AwaitStreams();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(word()), 8), "written!");
}

TEST_F(GpuWriterTest, OthersGoOnWhileOneAwaits) {
  gpu_->fake().hold(1);
  ASSERT_TRUE(writer_->Add(at(0), 1, false).ok());
  Waiter waiter(writer_.get());
  EXPECT_TRUE(IsAwaited());
  std::atomic<bool> added{false};
  std::thread other([&] {
    EXPECT_TRUE(writer_->Add(at(8), 1, false).ok());
    added = true;
  });
  const Deadline deadline(10);
  while (!added && deadline.Yield()) {
  }
  EXPECT_TRUE(added);
  EXPECT_FALSE(waiter.returned());
  gpu_->fake().hold(0);
  other.join();
  EXPECT_TRUE(waiter.Join().ok());
  EXPECT_EQ(Word(), 1u);
  EXPECT_TRUE(writer_->Await().ok());
}

// What was given before the driver refused something is under way all the same.
TEST_F(GpuWriterTest, AfterAnErrorItAwaitsWhatWasGiven) {
  gpu_->fake().hold(1);
  bool room = false;
  ASSERT_TRUE(writer_->Put(at(0), "written!", &room).ok());
  gpu_->fake().fail("cuMemcpyHtoDAsync", 0, 700);
  EXPECT_FALSE(writer_->Put(at(8), "refused!", &room).ok());
  Waiter waiter(writer_.get());
  EXPECT_TRUE(IsAwaited());
  EXPECT_FALSE(waiter.returned());
  gpu_->fake().hold(0);
  EXPECT_TRUE(waiter.Join().ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(word()), 8), "written!");
}

TEST_F(GpuWriterTest, AdditionsThatWaitAreBounded) {
  gpu_->fake().hold(1);
  int added = 0;
  for (; writer_->MayAdd() && added < 5000; ++added) ASSERT_TRUE(writer_->Add(at(0), 1, false).ok());
  EXPECT_EQ(added, 1024);
  gpu_->fake().hold(0);
  EXPECT_TRUE(writer_->Await().ok());
  EXPECT_EQ(Word(), 1024u);
  EXPECT_TRUE(writer_->MayAdd());
}

TEST_F(GpuWriterTest, AWordOfOursIsRememberedUntilItIsForgotten) {
  ASSERT_TRUE(Add(1, true).ok());
  *word() = 100;
  ASSERT_TRUE(Add(1, true).ok());
  EXPECT_EQ(Word(), 2u) << "nobody else may write it";
  *word() = 100;
  writer_->EndRegion(at(0), 8);
  ASSERT_TRUE(Add(1, true).ok());
  EXPECT_EQ(Word(), 101u);
}

TEST_F(GpuWriterTest, StepsGrowWithWhatIsCarriedOut) {
  uint64_t before = 0;
  ASSERT_TRUE(writer_->Poll(&before).ok());
  EXPECT_TRUE(writer_->Reached(writer_->last()));
  gpu_->fake().hold(1);
  ASSERT_TRUE(writer_->Add(at(0), 1, false).ok());
  uint64_t steps = 0;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer_->Poll(&steps).ok());
  EXPECT_EQ(steps, before);
  EXPECT_FALSE(writer_->Reached(writer_->last()));
  gpu_->fake().hold(0);
  const Deadline deadline;
  while (!writer_->Reached(writer_->last()) && deadline.Yield()) ASSERT_TRUE(writer_->Poll(&steps).ok());
  EXPECT_GT(steps, before);
}

}  // namespace
}  // namespace tcpx
