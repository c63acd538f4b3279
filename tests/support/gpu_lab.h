// gpu_lab.h: GPU memory for tests, from the stand-in driver or a real one.
//
// Purpose: opens the driver before the plugin does. The stand-in is used if it is in the test's folder (Bazel puts it
//          there); else this machine's own, so that the same test runs on a GPU (tools/gpu).
// Threads: any. Lifetime: the library stays loaded; buffers free what they hold.
// Errors:  Open: kNotFound where there is no driver, kInternal where the stand-in is broken. All else ends the process:
//          a test can't go on without.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "net_socket/gpu/gpu_driver.h"
#include "tests/support/fake_cuda/fake_cuda.h"

namespace tcpx {

class GpuLab {
 public:
  static absl::StatusOr<std::unique_ptr<GpuLab>> Open();

  // False on a real driver: then fake() has null functions only.
  bool is_fake() const { return fake_.reset != nullptr; }
  const FakeCuda& fake() const { return fake_; }
  FakeCudaCounts counts() const;

  CuAddress Allocate(size_t bytes);
  void Free(CuAddress address);
  void Write(CuAddress to, const void* from, size_t bytes);
  void Read(void* to, CuAddress from, size_t bytes);

 private:
  GpuLab() = default;
  void Do(int result, const char* call);

  std::unique_ptr<GpuDriver> driver_;
  FakeCuda fake_;
  CuContext context_ = nullptr;
  int (*allocate_)(CuAddress* address, size_t bytes) = nullptr;
  int (*free_)(CuAddress address) = nullptr;
  int (*write_)(CuAddress to, const void* from, size_t bytes) = nullptr;
  int (*read_)(void* to, CuAddress from, size_t bytes) = nullptr;
};

class GpuBuffer {
 public:
  GpuBuffer(GpuLab* lab, size_t bytes) : lab_(lab), bytes_(bytes), address_(lab->Allocate(bytes)) {}
  ~GpuBuffer() { lab_->Free(address_); }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  void* data() const { return reinterpret_cast<void*>(address_); }
  size_t bytes() const { return bytes_; }
  void Write(size_t offset, const void* from, size_t bytes) { lab_->Write(address_ + offset, from, bytes); }
  std::vector<char> Read(size_t offset, size_t bytes) const {
    std::vector<char> read(bytes);
    lab_->Read(read.data(), address_ + offset, bytes);
    return read;
  }
  void Fill(char value) {
    // Piece by piece: a copy of all of a large buffer costs more than the tests that use it.
    const std::vector<char> same(std::min(bytes_, size_t{64} << 10), value);
    for (size_t at = 0; at < bytes_; at += same.size()) Write(at, same.data(), std::min(same.size(), bytes_ - at));
  }

 private:
  GpuLab* const lab_;
  const size_t bytes_;
  const CuAddress address_;
};

}  // namespace tcpx
