// gpu_driver.h: the functions of the CUDA driver that staging calls, found at run time.
//
// Purpose: the plugin is built without CUDA and runs without it. A caller of the driver opens a GpuScope first: it
//          makes a context current and lets this thread's calls pass while an application captures a graph.
// Threads: any, once loaded. A scope belongs to one thread and restores what it found.
// Lifetime: the library stays loaded until the process ends: NCCL uses it too.
// Errors:  Load: kNotFound, with what is missing. Check: kAborted, with the driver's name and text of the error.
// Source:  CUDA Driver API (cuda.h of CUDA 11.4 to 13.0): names with their version suffixes, values of enumerators,
//          layout of CUDA_MEMCPY2D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tcpx {

using CuAddress = uint64_t;  // CUdeviceptr
inline CuAddress CuAddressOf(const void* data) { return reinterpret_cast<CuAddress>(data); }
using CuContext = struct CuContextHandle*;
using CuStream = struct CuStreamHandle*;
using CuEvent = struct CuEventHandle*;

inline constexpr int kCuSuccess = 0;
inline constexpr int kCuNotReady = 600;                 // CUDA_ERROR_NOT_READY
inline constexpr int kCuPointerContext = 1;             // CU_POINTER_ATTRIBUTE_CONTEXT
inline constexpr int kCuPointerMemoryType = 2;          // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
inline constexpr int kCuPointerIsManaged = 8;           // CU_POINTER_ATTRIBUTE_IS_MANAGED
inline constexpr int kCuPointerDevice = 9;              // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
inline constexpr unsigned kCuMemoryHost = 1;            // CU_MEMORYTYPE_HOST
inline constexpr unsigned kCuMemoryDevice = 2;          // CU_MEMORYTYPE_DEVICE
inline constexpr unsigned kCuStreamNonBlocking = 1;     // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kCuEventDisableTiming = 2;    // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kCuHostRegisterPortable = 1;  // CU_MEMHOSTREGISTER_PORTABLE
inline constexpr int kCuCaptureRelaxed = 2;             // CU_STREAM_CAPTURE_MODE_RELAXED

// CUDA_MEMCPY2D_v2.
struct CuCopy2D {
  size_t source_x = 0;
  size_t source_y = 0;
  unsigned source_type = 0;
  const void* source_host = nullptr;
  CuAddress source_device = 0;
  void* source_array = nullptr;
  size_t source_pitch = 0;
  size_t target_x = 0;
  size_t target_y = 0;
  unsigned target_type = 0;
  void* target_host = nullptr;
  CuAddress target_device = 0;
  void* target_array = nullptr;
  size_t target_pitch = 0;
  size_t width = 0;
  size_t height = 0;
};
static_assert(sizeof(CuCopy2D) == 128);

struct GpuApi {
  int (*init)(unsigned flags);
  int (*device_get_count)(int* count);
  int (*get_error_name)(int error, const char** name);
  int (*get_error_string)(int error, const char** text);
  int (*pointer_get_attribute)(void* value, int attribute, CuAddress at);
  int (*primary_retain)(CuContext* context, int device);
  int (*primary_release)(int device);
  int (*context_push)(CuContext context);
  int (*context_pop)(CuContext* context);
  int (*exchange_capture_mode)(int* mode);
  int (*host_register)(void* data, size_t bytes, unsigned flags);
  int (*host_unregister)(void* data);
  int (*stream_create)(CuStream* stream, unsigned flags);
  int (*stream_destroy)(CuStream stream);
  int (*stream_query)(CuStream stream);
  int (*event_create)(CuEvent* event, unsigned flags);
  int (*event_destroy)(CuEvent event);
  int (*event_record)(CuEvent event, CuStream stream);
  int (*event_query)(CuEvent event);
  int (*copy_from_device)(void* to, CuAddress from, size_t bytes, CuStream stream);
  int (*copy_to_device)(CuAddress to, const void* from, size_t bytes, CuStream stream);
  int (*copy_2d)(const CuCopy2D* copy, CuStream stream);
  // Null in old drivers: what one-sided transfers need.
  int (*copy)(CuAddress to, CuAddress from, size_t bytes, CuStream stream);
  int (*write_word)(CuStream stream, CuAddress at, uint64_t value, unsigned flags);
};

class GpuDriver {
 public:
  static absl::StatusOr<std::unique_ptr<GpuDriver>> Load(const char* library = "libcuda.so.1");

  const GpuApi& api() const { return api_; }
  // A stream can write signals. The first release where that needs no option of the kernel module: CUDA 11.7.
  bool writes_words() const { return api_.copy != nullptr && api_.write_word != nullptr; }
  // OK exactly when `result` is kCuSuccess; `call` names the function.
  absl::Status Check(int result, const char* call) const;

 private:
  GpuDriver() = default;

  GpuApi api_{};
};

class GpuScope {
 public:
  GpuScope(const GpuDriver& driver, CuContext context);
  ~GpuScope();
  GpuScope(const GpuScope&) = delete;
  GpuScope& operator=(const GpuScope&) = delete;

  // Whether the context could be entered: a failed scope calls nothing.
  const absl::Status& status() const { return status_; }

 private:
  const GpuDriver& driver_;
  int capture_mode_ = kCuCaptureRelaxed;  // the other one while it is exchanged
  absl::Status status_;
};

}  // namespace tcpx
