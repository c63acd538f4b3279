// What staging promises NCCL and the application: announced from v9 on, groups of receives, a flush that completes at
// once, no waiting inside a call, and nothing that breaks the capture of a graph or leaves a thread changed.
#include <algorithm>

#include "tests/plugin/staging/staging_fixture.h"

namespace tcpx {
namespace {

constexpr size_t kBytes = 200000;

class StagingRulesTest : public StagingTest {
 protected:
  void SetUp() override {
    StagingTest::SetUp();
    if (plugin_ == nullptr) return;
    from_ = std::make_unique<Buffer>(lab_.get(), true, kBytes);
    to_ = std::make_unique<Buffer>(lab_.get(), true, kBytes);
  }

  void MoveOne() {
    void* const from_handle = Register(pair_.send, from_.get());
    void* const to_handle = Register(pair_.receive, to_.get());
    void *send = nullptr, *receive = nullptr;
    int sent = 0, received = 0;
    Deadline deadline;
    while ((sent == 0 || received == 0) && deadline.Yield()) {
      if (receive == nullptr) {
        ASSERT_EQ(ncclSuccess, TryReceive(to_->data(), kBytes, to_handle, &receive));
      } else if (received == 0) {
        ASSERT_EQ(ncclSuccess, net().Test(receive, &received, nullptr)) << LogText();
      }
      if (send == nullptr) {
        ASSERT_EQ(ncclSuccess, TrySend(from_->data(), kBytes, from_handle, &send));
      } else if (sent == 0) {
        ASSERT_EQ(ncclSuccess, net().Test(send, &sent, nullptr)) << LogText();
      }
    }
    ASSERT_EQ(1, received);
    void* data = to_->data();
    int size = kBytes;
    void* handle = to_handle;
    void* request = &size;
    EXPECT_EQ(ncclSuccess, net().Iflush(pair_.receive, 1, &data, &size, &handle, &request));
    EXPECT_EQ(nullptr, request);
    EXPECT_EQ(from_->Read(), to_->Read());
    EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, from_handle));
    EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, to_handle));
  }

  std::unique_ptr<Buffer> from_, to_;
};

TEST_P(StagingRulesTest, AFlushCompletesAtOnce) {
  from_->Fill('f');
  MoveOne();
}

// The application captures in the mode that forbids other threads the most.
TEST_P(StagingRulesTest, ACaptureGoesOnUndisturbed) {
  if (!lab_->is_fake()) GTEST_SKIP() << "needs the stand-in driver's account of calls";
  lab_->fake().capture(1);
  MoveOne();
  lab_->fake().capture(0);
  EXPECT_EQ(0, lab_->counts().capture_broken);
  int contexts = -1, mode = -1;
  lab_->fake().thread_state(&contexts, &mode);
  EXPECT_EQ(0, contexts);
  EXPECT_EQ(0, mode);
}

// While copies are stopped, every call returns, and nothing is done before its copy.
TEST_P(StagingRulesTest, NoCallWaitsForACopy) {
  if (!lab_->is_fake()) GTEST_SKIP() << "a real driver's copies can't be held";
  Start({{"TCPX_MAX_RECVS", "1"}});
  void* const from_handle = Register(pair_.send, from_.get());
  void* const to_handle = Register(pair_.receive, to_.get());
  void *send = nullptr, *receive = nullptr;
  lab_->fake().hold(1);
  ASSERT_EQ(ncclSuccess, TrySend(from_->data(), kBytes, from_handle, &send));
  ASSERT_EQ(ncclSuccess, TryReceive(to_->data(), kBytes, to_handle, &receive));
  ASSERT_NE(nullptr, send);
  ASSERT_NE(nullptr, receive);
  for (int i = 0; i < 1000; ++i) {
    int done = 0;
    ASSERT_EQ(ncclSuccess, net().Test(send, &done, nullptr));
    ASSERT_EQ(0, done);
    ASSERT_EQ(ncclSuccess, net().Test(receive, &done, nullptr));
    ASSERT_EQ(0, done);
  }
  lab_->fake().hold(0);
  int sent = 0, received = 0;
  Deadline deadline;
  while ((sent == 0 || received == 0) && deadline.Yield()) {
    if (sent == 0) {
      ASSERT_EQ(ncclSuccess, net().Test(send, &sent, nullptr));
    }
    if (received == 0) {
      ASSERT_EQ(ncclSuccess, net().Test(receive, &received, nullptr));
    }
  }
  EXPECT_EQ(1, received);
}

// A short tail was sent at once, into the middle of the part before it, which the kernel had not taken whole.
TEST_P(StagingRulesTest, ATailWaitsForThePartBeforeIt) {
  constexpr size_t kLong = (2 << 20) + 14;
  Start(
      {{"TCPX_MAX_RECVS", "1"}, {"TCPX_LANES", "1"}, {"NCCL_SOCKET_SNDBUF", "65536"}, {"NCCL_SOCKET_RCVBUF", "65536"}});
  Buffer from(lab_.get(), true, kLong), to(lab_.get(), true, kLong);
  std::vector<char> text(kLong);
  for (size_t i = 0; i < kLong; ++i) text[i] = static_cast<char>(i * 7 + i / 997);
  from.Write(0, text.data(), text.size());
  void* const from_handle = Register(pair_.send, &from);
  void* const to_handle = Register(pair_.receive, &to);
  void *send = nullptr, *receive = nullptr;
  int sent = 0, received = 0;
  Deadline deadline;
  while (send == nullptr && deadline.Yield()) {
    ASSERT_EQ(ncclSuccess, TrySend(from.data(), kLong, from_handle, &send));
  }
  while (receive == nullptr && deadline.Yield()) {
    ASSERT_EQ(ncclSuccess, TryReceive(to.data(), kLong, to_handle, &receive));
  }
  // The sender is far ahead each time that the receiver makes room.
  while ((sent == 0 || received == 0) && deadline.Yield()) {
    for (int i = 0; i < 200 && sent == 0; ++i) {
      ASSERT_EQ(ncclSuccess, net().Test(send, &sent, nullptr)) << LogText();
    }
    if (received == 0) {
      ASSERT_EQ(ncclSuccess, net().Test(receive, &received, nullptr)) << LogText();
    }
  }
  ASSERT_EQ(1, received);
  EXPECT_EQ(text, to.Read());
  EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, from_handle));
  EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, to_handle));
}

TEST_P(StagingRulesTest, GroupsOfReceivesMixBothKinds) {
  constexpr int kMembers = 4;
  constexpr size_t kMember = 150000;
  Buffer gpu(lab_.get(), true, kMembers * kMember);
  std::vector<char> host(kMembers * kMember);
  void* const gpu_handle = Register(pair_.receive, &gpu);
  void* data[kMembers];
  void* handles[kMembers];
  size_t sizes[kMembers];
  int tags[kMembers], got[kMembers] = {};
  for (int i = 0; i < kMembers; ++i) {
    const size_t at = static_cast<size_t>(i) * kMember;
    data[i] = i % 2 == 0 ? gpu.data() + at : host.data() + at;
    handles[i] = i % 2 == 0 ? gpu_handle : nullptr;
    sizes[i] = kMember;
    tags[i] = 10 + i;
  }
  void* receive = nullptr;
  ASSERT_EQ(ncclSuccess, net().Irecv(pair_.receive, kMembers, data, sizes, tags, handles, nullptr, &receive));
  ASSERT_NE(nullptr, receive);
  for (int i = kMembers - 1; i >= 0; --i) {
    const std::vector<char> text(kMember, static_cast<char>('a' + i));
    auto member = std::make_unique<Buffer>(lab_.get(), true, kMember);
    member->Write(0, text.data(), text.size());
    void* const handle = Register(pair_.send, member.get());
    void* send = nullptr;
    Deadline deadline;
    while (send == nullptr && deadline.Yield()) {
      ASSERT_EQ(ncclSuccess, net().Isend(pair_.send, member->data(), kMember - 1, 10 + i, handle, nullptr, &send));
    }
    int done = 0;
    while (done == 0 && deadline.Yield()) {
      int received = 0;
      ASSERT_EQ(ncclSuccess, net().Test(send, &done, nullptr)) << LogText();
      if (i > 0) {
        ASSERT_EQ(ncclSuccess, net().Test(receive, &received, nullptr)) << LogText();
      }
      ASSERT_EQ(0, received);
    }
    ASSERT_EQ(1, done);
    EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, handle));
  }
  ASSERT_TRUE(WaitFor(&net(), receive, got).ok()) << LogText();
  const std::vector<char> landed = gpu.Read();
  for (int i = 0; i < kMembers; ++i) {
    const char* const at = (i % 2 == 0 ? landed.data() : host.data()) + static_cast<size_t>(i) * kMember;
    EXPECT_EQ(static_cast<int>(kMember - 1), got[i]);
    EXPECT_TRUE(std::all_of(at, at + kMember - 1, [i](char c) { return c == 'a' + i; })) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryMode, StagingRulesTest, ::testing::ValuesIn(StagingModes()), ModeName);

// Versions before v9 don't show which receives are LL's or LL128's.
class AnnouncedTest : public ::testing::TestWithParam<int> {};

TEST_P(AnnouncedTest, FromV9On) {
  auto lab = GpuLab::Open();
  if (absl::IsNotFound(lab.status())) GTEST_SKIP() << "no CUDA driver: " << lab.status();
  ASSERT_TRUE(lab.ok()) << lab.status();
  for (const bool staging : {true, false}) {
    Mode settings;
    settings.version = GetParam();
    settings.environment["TCPX_GPU_DIRECT_STAGING"] = staging ? "1" : "0";
    auto plugin = TestPlugin::Open(settings);
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    ncclNetProperties_v12_t properties = {};
    ASSERT_EQ(ncclSuccess, (*plugin)->net().GetProperties(0, &properties));
    const bool announced = staging && GetParam() >= 9;
    EXPECT_EQ(announced ? NCCL_PTR_HOST | NCCL_PTR_CUDA : NCCL_PTR_HOST, properties.ptrSupport);
    EXPECT_EQ(announced ? 8 : 1, properties.maxRecvs);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryVersion, AnnouncedTest, ::testing::Range(6, 13));

}  // namespace
}  // namespace tcpx
