// Puts and gets of 1 GiB, the longest that NCCL issues, at places beyond 4 GiB, and of one byte more.
#include <gtest/gtest.h>
#include <sys/sysinfo.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/rma/rma_lab.h"
#include "tests/support/folded_memory.h"
#include "tests/support/pattern.h"
#include "tests/support/plugin_log.h"
#include "tests/support/rank.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

constexpr size_t kGib = size_t{1} << 30;
// Odd, and such that the transfer crosses 4 GiB in both memories, or neither.
constexpr size_t kNear = 3;
constexpr size_t kFar = 4 * kGib - 2 * FoldedMemory::kFold + 5;
constexpr size_t kEnd = 64 << 10;  // what is looked at of each end

class RmaLargeTest : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().ReasonToSkip();
    if (!missing.empty()) GTEST_SKIP() << missing;
    auto lab = RmaLab::Open(GetParam(), {.ranks = 2, .contexts = 1});
    ASSERT_TRUE(lab.ok()) << lab.status();
    lab_ = *std::move(lab);
    signals_ = Must(lab_->Register(64, NCCL_NET_MR_FLAG_FORCE_SO));
  }
  // Rank 0's `near` and rank 1's `far` have the same handle.
  void* Register(char* near, size_t near_bytes, char* far, size_t far_bytes) {
    void* const mhandle = Must(lab_->RegisterAt(0, near, near_bytes));
    Must(lab_->RegisterAt(1, far, far_bytes));
    return mhandle;
  }
  void PutAndAwait(const RmaRange& range) {
    RmaSignal signal;
    signal.region = signals_->of(0);
    void* request = nullptr;
    ASSERT_EQ(ncclSuccess, lab_->rma().IputSignal(lab_->rank(0).contexts, 0, range, signal, 0, &request)) << LogText();
    ASSERT_EQ(absl::OkStatus(), lab_->Wait(0, request));
    ASSERT_EQ(absl::OkStatus(), lab_->Until([&] { return signals_->Word(1, 0) == 1; }));
  }
  void GetAndAwait(const RmaRange& range) {
    void* request = nullptr;
    ASSERT_EQ(ncclSuccess, lab_->rma().Iget(lab_->rank(0).contexts, 0, range, 0, &request)) << LogText();
    ASSERT_EQ(absl::OkStatus(), lab_->Wait(0, request));
  }

  std::unique_ptr<RmaLab> lab_;
  RmaMemory* signals_ = nullptr;
};

// The ends of 1 GiB at `data`, and its middle; `before` and the byte after it are as they were.
void ExpectTheEnds(const Pattern& pattern, const char* data) {
  EXPECT_EQ("", pattern.Check(1, data, kEnd));
  EXPECT_EQ("", pattern.Check(2, data + kGib - kEnd, kEnd));
  EXPECT_EQ(std::string(kEnd, 'm'), std::string(data + kGib / 2, kEnd));
  EXPECT_EQ('\0', data[-1]);
  EXPECT_EQ('\0', data[kGib]);
}

TEST_P(RmaLargeTest, OneGibWithLittleMemory) {
  const Pattern pattern(TestSeed(), kEnd);
  FoldedMemory source(kGib + FoldedMemory::kFold, kNear, kNear + kGib);
  FoldedMemory window(5 * kGib, kFar, kFar + kGib);
  FoldedMemory gotten(kGib + FoldedMemory::kFold, kNear, kNear + kGib);
  ASSERT_NE(nullptr, source.data());
  ASSERT_NE(nullptr, window.data());
  ASSERT_NE(nullptr, gotten.data());
  std::memset(source.data() + kNear, 'm', 3 * FoldedMemory::kFold);
  char* const last = source.data() + kNear + kGib - kEnd;
  std::memset(source.data() + kGib, 'm', kNear);
  std::memcpy(source.data() + kNear, pattern.Bytes(1), kEnd);
  std::memcpy(last, pattern.Bytes(2), kEnd);
  void* const data = Register(source.data(), source.bytes(), window.data(), window.bytes());
  void* const back = Register(gotten.data(), gotten.bytes(), window.data(), window.bytes());
  PutAndAwait({data, kNear, data, kFar, kGib, 1});
  ExpectTheEnds(pattern, window.data() + kFar);
  GetAndAwait({back, kNear, back, kFar, kGib, 1});
  ExpectTheEnds(pattern, gotten.data() + kNear);
  EXPECT_EQ(0, WarningCount()) << LogText();
}

// Every byte.
TEST_P(RmaLargeTest, OneGib) {
  if (!LongRun()) GTEST_SKIP() << "with TCPX_TEST_LONG=1";
  struct sysinfo host;
  if (sysinfo(&host) != 0 || host.freeram * host.mem_unit < 6 * kGib) GTEST_SKIP() << "too little memory";
  std::vector<uint64_t> source(kGib / sizeof(uint64_t));
  std::vector<uint64_t> window(kGib / sizeof(uint64_t));
  for (size_t i = 0; i < source.size(); ++i) source[i] = TestSeed() + i * 0x9e3779b97f4a7c15u;
  void* const data =
      Register(reinterpret_cast<char*>(source.data()), kGib, reinterpret_cast<char*>(window.data()), kGib);
  PutAndAwait({data, 0, data, 0, kGib, 1});
  EXPECT_TRUE(source == window);
  const std::vector<uint64_t> before = source;
  std::fill(source.begin(), source.end(), 0);
  GetAndAwait({data, 0, data, 0, kGib, 1});
  EXPECT_TRUE(source == before);
}

TEST_P(RmaLargeTest, AByteMoreIsRefused) {
  FoldedMemory memory(kGib + FoldedMemory::kFold, 0, kGib);
  ASSERT_NE(nullptr, memory.data());
  void* const data = Register(memory.data(), memory.bytes(), memory.data(), memory.bytes());
  for (const bool gets : {false, true}) {
    const RmaRange range = {data, 0, data, 0, kGib + 1, 1};
    void* request = nullptr;
    void* const contexts = lab_->rank(0).contexts;
    const ncclResult_t result =
        gets ? lab_->rma().Iget(contexts, 0, range, 0, &request) : lab_->rma().Iput(contexts, 0, range, 0, &request);
    EXPECT_NE(ncclSuccess, result);
    EXPECT_EQ(nullptr, request);
  }
  EXPECT_TRUE(LogHas("1073741825 bytes, of at most 1 GiB")) << LogText();
  EXPECT_TRUE(lab_->HasFailed(0));
}

INSTANTIATE_TEST_SUITE_P(EveryMode, RmaLargeTest, ::testing::ValuesIn(AllModes({4})), ModeName);

}  // namespace
}  // namespace tcpx
