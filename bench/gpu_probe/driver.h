// driver.h: the functions of the CUDA driver that gpu_probe calls, found at run time, and a kernel.
//
// Purpose: gpu_probe is built where there is no GPU. Members have the driver's names, with the versions that cuda.h
//          gives them.
// Threads: one. Lifetime: until the process ends.
// Errors:  Open: kNotFound where there is no GPU, in the driver's words. Check: kInternal with the driver's name.
// Source:  cuda.h of the toolkit that it is built with; PTX ISA 6.0.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tcpx {
namespace gpu_probe {

#define TCPX_GPU_PROBE_FUNCTIONS(X) \
  X(cuInit)                         \
  X(cuDeviceGet)                    \
  X(cuDeviceGetCount)               \
  X(cuDeviceGetName)                \
  X(cuDriverGetVersion)             \
  X(cuGetErrorName)                 \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuCtxPushCurrent)               \
  X(cuModuleLoadData)               \
  X(cuModuleGetFunction)            \
  X(cuLaunchKernel)                 \
  X(cuMemAlloc)                     \
  X(cuMemHostAlloc)                 \
  X(cuMemHostGetDevicePointer)      \
  X(cuMemsetD8)                     \
  X(cuMemcpyHtoDAsync)              \
  X(cuStreamCreate)                 \
  X(cuStreamDestroy)                \
  X(cuStreamSynchronize)            \
  X(cuStreamQuery)                  \
  X(cuStreamWaitValue64)            \
  X(cuStreamWriteValue64)

class Driver {
 public:
  static absl::StatusOr<std::unique_ptr<Driver>> Open();
  absl::Status Check(CUresult result, const char* call) const;
  // "NVIDIA H100, driver 13.0".
  std::string Describe() const;
  // The kernel waits until the word at `at` is 1, and says so at `seen`; then until it is 2; and so up to `last`.
  absl::Status StartKernel(CUstream stream, CUdeviceptr at, CUdeviceptr seen, uint64_t last) const;

#define TCPX_MEMBER(name) decltype(&::name) name = nullptr;
  TCPX_GPU_PROBE_FUNCTIONS(TCPX_MEMBER)
#undef TCPX_MEMBER

 private:
  Driver() = default;
  absl::Status Find(void* library);
  absl::Status Enter();

  CUdevice device_ = 0;
  CUfunction kernel_ = nullptr;
};

// Memory of the host that the GPU reaches too, zeroed; it stays until the process ends.
struct SharedWords {
  volatile uint64_t* host = nullptr;
  CUdeviceptr gpu = 0;
};
absl::StatusOr<SharedWords> AllocateShared(const Driver& driver, size_t bytes);
// GPU memory, zeroed. It also stays until the process ends.
absl::StatusOr<CUdeviceptr> AllocateOnGpu(const Driver& driver, size_t bytes);

}  // namespace gpu_probe
}  // namespace tcpx
