// staging_fixture.h: a pair of the real plugin that stages GPU memory, and messages between buffers of either kind.
//
// Threads: one at a time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/deadline.h"
#include "tests/support/gpu_lab.h"
#include "tests/support/plugin_test.h"
#include "tests/support/seed.h"

namespace tcpx {

inline std::vector<Mode> StagingModes() { return AllModes({1, 4}); }

// Memory of either kind, filled with kGuardByte's like, registered with one comm.
class Buffer {
 public:
  static constexpr char kFill = '\x5A';

  Buffer(GpuLab* lab, bool on_gpu, size_t bytes) : host_(on_gpu ? 0 : bytes, kFill) {
    if (!on_gpu) return;
    gpu_ = std::make_unique<GpuBuffer>(lab, bytes);
    gpu_->Fill(kFill);
  }

  char* data() { return gpu_ != nullptr ? static_cast<char*>(gpu_->data()) : host_.data(); }
  size_t bytes() const { return gpu_ != nullptr ? gpu_->bytes() : host_.size(); }
  int type() const { return gpu_ != nullptr ? NCCL_PTR_CUDA : NCCL_PTR_HOST; }
  void Fill(char value) {
    if (gpu_ != nullptr) {
      gpu_->Fill(value);
    } else {
      host_.assign(host_.size(), value);
    }
  }
  void Write(size_t offset, const char* from, size_t bytes) {
    if (gpu_ != nullptr) {
      gpu_->Write(offset, from, bytes);
    } else {
      std::copy(from, from + bytes, host_.begin() + static_cast<long>(offset));
    }
  }
  std::vector<char> Read() const { return gpu_ != nullptr ? gpu_->Read(0, gpu_->bytes()) : host_; }

 private:
  std::unique_ptr<GpuBuffer> gpu_;
  std::vector<char> host_;
};

class StagingTest : public PluginTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    const std::string reason = GetParam().ReasonToSkip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    auto lab = GpuLab::Open();
    if (absl::IsNotFound(lab.status())) GTEST_SKIP() << "no CUDA driver: " << lab.status();
    ASSERT_TRUE(lab.ok()) << lab.status();
    lab_ = *std::move(lab);
    Start({});
  }

  void TearDown() override {
    if (lab_ != nullptr && lab_->is_fake()) lab_->fake().reset();
    if (plugin_ == nullptr) return;
    PluginTest::TearDown();
    plugin_.reset();
    if (!lab_->is_fake()) return;
    const FakeCudaCounts left = lab_->counts();
    EXPECT_EQ(0u, left.pinned_bytes);
    EXPECT_EQ(0u, left.streams);
    EXPECT_EQ(0u, left.events);
  }

  // Loads the plugin anew. Slots are small and few, so that every message needs several and waits for some.
  void Start(const std::map<std::string, std::string>& environment) {
    Mode settings = GetParam();
    settings.environment["TCPX_GPU_DIRECT_STAGING"] = "1";
    settings.environment["TCPX_TEST_GPU_SLOT_BYTES"] = "64K";
    settings.environment["TCPX_GPU_POOL_BYTES"] = "1M";
    for (const auto& [name, value] : environment) settings.environment[name] = value;
    OpenPair(settings);
  }

  void* Register(void* comm, Buffer* buffer) {
    void* handle = nullptr;
    EXPECT_EQ(ncclSuccess, net().RegMr(comm, buffer->data(), buffer->bytes(), buffer->type(), &handle)) << LogText();
    return handle;
  }

  ncclResult_t TrySend(void* data, size_t bytes, void* handle, void** request) {
    return net().Isend(pair_.send, data, bytes, 0, handle, nullptr, request);
  }
  ncclResult_t TryReceive(void* data, size_t bytes, void* handle, void** request) {
    int tag = 0;
    return net().Irecv(pair_.receive, 1, &data, &bytes, &tag, &handle, nullptr, request);
  }

  // Skips aloud where the driver is a real one.
  bool NeedsFake() const { return !lab_->is_fake(); }

  std::unique_ptr<GpuLab> lab_;
};

}  // namespace tcpx
