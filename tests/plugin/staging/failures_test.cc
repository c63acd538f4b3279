// What the driver refuses, and wrong pointers: the result names CUDA or the user, the log has the driver's text, and
// the connection ends as after any other failure.
#include <string>

#include "tests/plugin/staging/staging_fixture.h"

namespace tcpx {
namespace {

constexpr size_t kBytes = 300000;
constexpr int kOutOfMemory = 2;           // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kIllegalAddress = 700;      // CUDA_ERROR_ILLEGAL_ADDRESS
constexpr int kContextIsDestroyed = 709;  // CUDA_ERROR_CONTEXT_IS_DESTROYED
constexpr char kText[] = "the fake driver says so";

class FailuresTest : public StagingTest {
 protected:
  void SetUp() override {
    StagingTest::SetUp();
    if (plugin_ == nullptr) return;
    if (!lab_->is_fake()) GTEST_SKIP() << "a real driver does not fail on demand";
    Start({{"TCPX_SPREAD_ERRORS", "0"}});
    gpu_ = std::make_unique<Buffer>(lab_.get(), true, kBytes);
    host_ = std::make_unique<Buffer>(lab_.get(), false, kBytes);
  }

  void ExpectText() { EXPECT_TRUE(LogHas(kText)) << LogText(); }

  // Moves one message until the end that stages has failed; the other one then fails too.
  void FailWhile(bool sending) {
    void* const send_handle = sending ? Register(pair_.send, gpu_.get()) : nullptr;
    void* const receive_handle = sending ? nullptr : Register(pair_.receive, gpu_.get());
    void *send = nullptr, *receive = nullptr;
    ncclResult_t sent = ncclSuccess, received = ncclSuccess;
    Deadline deadline;
    while ((sent == ncclSuccess || received == ncclSuccess) && deadline.Yield()) {
      int done = 0, size = 0;
      if (receive == nullptr) {
        received = TryReceive(sending ? host_->data() : gpu_->data(), kBytes, receive_handle, &receive);
      } else if (received == ncclSuccess) {
        received = net().Test(receive, &done, &size);
      }
      if (send == nullptr) {
        sent = TrySend(sending ? gpu_->data() : host_->data(), kBytes, send_handle, &send);
      } else if (sent == ncclSuccess) {
        sent = net().Test(send, &done, &size);
        if (done != 0) sent = ncclRemoteError;  // It may be through before the receiver fails.
      }
      ASSERT_FALSE(sending && done != 0);
    }
    EXPECT_EQ(ncclUnhandledCudaError, sending ? sent : received);
    EXPECT_EQ(ncclRemoteError, sending ? received : sent);
    ExpectText();
    lab_->fake().reset();
    if (send_handle != nullptr) {
      EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, send_handle));
    }
    if (receive_handle != nullptr) {
      EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, receive_handle));
    }
    EXPECT_TRUE(plugin_->Close(pair_).ok());
    auto pair = plugin_->Connect();  // Others go on.
    EXPECT_TRUE(pair.ok()) << pair.status();
  }

  std::unique_ptr<Buffer> gpu_, host_;
};

TEST_P(FailuresTest, ACopyOutOfTheGpuCanNotBeStarted) {
  lab_->fake().fail("cuMemcpyDtoHAsync", 2, kIllegalAddress);
  FailWhile(true);
}

TEST_P(FailuresTest, ACopyIntoTheGpuCanNotBeStarted) {
  lab_->fake().fail("cuMemcpyHtoDAsync", 2, kIllegalAddress);
  FailWhile(false);
}

TEST_P(FailuresTest, ACopyOutOfTheGpuFails) {
  lab_->fake().delays(TestSeed(), 2000);
  lab_->fake().fail("cuEventQuery", 1, kIllegalAddress);
  FailWhile(true);
}

TEST_P(FailuresTest, ACopyIntoTheGpuFails) {
  lab_->fake().delays(TestSeed(), 2000);
  lab_->fake().fail("cuEventQuery", 1, kIllegalAddress);
  FailWhile(false);
}

TEST_P(FailuresTest, AnEventCanNotBeRecorded) {
  lab_->fake().delays(TestSeed(), 2000);
  lab_->fake().fail("cuEventRecord", 3, kOutOfMemory);
  FailWhile(false);
}

// The device was reset: its context is gone once copies were started, and nobody can wait for them.
TEST_P(FailuresTest, TheContextIsGoneWhileSending) {
  void* const handle = Register(pair_.send, gpu_.get());
  ASSERT_NE(nullptr, handle);
  lab_->fake().hold(1);
  lab_->fake().fail("cuCtxPushCurrent", 1, kContextIsDestroyed);
  void *send = nullptr, *receive = nullptr;
  Deadline deadline;
  ncclResult_t result = ncclSuccess;
  while (result == ncclSuccess && deadline.Yield()) {
    int done = 0;
    if (receive == nullptr) {
      ASSERT_EQ(ncclSuccess, TryReceive(host_->data(), kBytes, nullptr, &receive));
    }
    result = send == nullptr ? TrySend(gpu_->data(), kBytes, handle, &send) : net().Test(send, &done, nullptr);
    ASSERT_EQ(0, done);
  }
  EXPECT_EQ(ncclUnhandledCudaError, result);
  ExpectText();
  EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, handle));
  lab_->fake().reset();
}

TEST_P(FailuresTest, NoMemoryToPin) {
  lab_->fake().fail("cuMemHostRegister", 0, kOutOfMemory);
  void* handle = nullptr;
  EXPECT_EQ(ncclUnhandledCudaError, net().RegMr(pair_.send, gpu_->data(), kBytes, NCCL_PTR_CUDA, &handle));
  EXPECT_EQ(nullptr, handle);
  EXPECT_TRUE(LogHas("CUDA_ERROR_OUT_OF_MEMORY")) << LogText();
  lab_->fake().reset();
  EXPECT_EQ(ncclSuccess, net().RegMr(pair_.send, gpu_->data(), kBytes, NCCL_PTR_CUDA, &handle));
}

TEST_P(FailuresTest, APointerThatIsNotWhatItsTypeSays) {
  void* handle = nullptr;
  EXPECT_EQ(ncclInvalidUsage, net().RegMr(pair_.send, host_->data(), kBytes, NCCL_PTR_CUDA, &handle));
  ExpectText();
  EXPECT_EQ(ncclInvalidUsage, net().RegMr(pair_.receive, gpu_->data(), kBytes, NCCL_PTR_HOST, &handle));
  EXPECT_TRUE(LogHas("calls it GPU memory")) << LogText();
  EXPECT_EQ(nullptr, handle);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, FailuresTest, ::testing::ValuesIn(StagingModes()), ModeName);

}  // namespace
}  // namespace tcpx
