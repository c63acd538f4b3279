#include "bench/gpu_probe/driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace gpu_probe {
namespace {

// Reads the word past all caches in each round.
constexpr char kKernel[] = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry wait_in_turn(.param .u64 at, .param .u64 seen, .param .u64 last)
{
  .reg .pred %p;
  .reg .u64 %at, %seen, %last, %value, %turn;
  ld.param.u64 %at, [at];
  ld.param.u64 %seen, [seen];
  ld.param.u64 %last, [last];
  mov.u64 %turn, 1;
AGAIN:
  ld.volatile.global.u64 %value, [%at];
  setp.lo.u64 %p, %value, %turn;
  @%p bra AGAIN;
  st.volatile.global.u64 [%seen], %turn;
  membar.sys;
  add.u64 %turn, %turn, 1;
  setp.le.u64 %p, %turn, %last;
  @%p bra AGAIN;
  ret;
}
)";

// cuda.h renames most functions to their latest version: the name after that is the library's.
#define TCPX_NAME_AS_IT_IS(name) #name
#define TCPX_NAME(name) TCPX_NAME_AS_IT_IS(name)

}  // namespace

absl::Status Driver::Find(void* library) {
  const char* missing = nullptr;
#define TCPX_FIND(name)                                                     \
  name = reinterpret_cast<decltype(name)>(dlsym(library, TCPX_NAME(name))); \
  if (name == nullptr && missing == nullptr) missing = TCPX_NAME(name);
  TCPX_GPU_PROBE_FUNCTIONS(TCPX_FIND)
#undef TCPX_FIND
  return missing == nullptr ? absl::OkStatus() : absl::NotFoundError(absl::StrCat("the CUDA driver has no ", missing));
}

absl::StatusOr<std::unique_ptr<Driver>> Driver::Open() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  std::unique_ptr<Driver> driver(new Driver);
  absl::Status status = driver->Find(library);
  if (!status.ok()) return status;
  int count = 0;
  status = driver->Check(driver->cuInit(0), "cuInit");
  if (status.ok()) status = driver->Check(driver->cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (!status.ok()) return absl::NotFoundError(status.message());
  if (count == 0) return absl::NotFoundError("the CUDA driver offers no GPU");
  status = driver->Enter();
  if (!status.ok()) return status;
  return driver;
}

absl::Status Driver::Enter() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  absl::Status status = Check(cuDeviceGet(&device_, 0), "cuDeviceGet");
  if (status.ok()) status = Check(cuDevicePrimaryCtxRetain(&context, device_), "cuDevicePrimaryCtxRetain");
  if (status.ok()) status = Check(cuCtxPushCurrent(context), "cuCtxPushCurrent");
  if (status.ok()) status = Check(cuModuleLoadData(&module, kKernel), "cuModuleLoadData");
  if (status.ok()) status = Check(cuModuleGetFunction(&kernel_, module, "wait_in_turn"), "cuModuleGetFunction");
  return status;
}

absl::Status Driver::Check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  return absl::InternalError(absl::StrCat(call, ": ", name, " (", static_cast<int>(result), ")"));
}

std::string Driver::Describe() const {
  char name[128] = "";
  int version = 0;
  (void)cuDeviceGetName(name, sizeof(name), device_);
  (void)cuDriverGetVersion(&version);
  return absl::StrCat(name, ", driver ", version / 1000, ".", version % 1000 / 10);
}

absl::Status Driver::StartKernel(CUstream stream, CUdeviceptr at, CUdeviceptr seen, uint64_t last) const {
  void* arguments[] = {&at, &seen, &last};
  return Check(cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
}

absl::StatusOr<SharedWords> AllocateShared(const Driver& driver, size_t bytes) {
  void* host = nullptr;
  SharedWords words;
  absl::Status status = driver.Check(
      driver.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
  if (status.ok()) {
    status = driver.Check(driver.cuMemHostGetDevicePointer(&words.gpu, host, 0), "cuMemHostGetDevicePointer");
  }
  if (!status.ok()) return status;
  words.host = static_cast<volatile uint64_t*>(host);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) words.host[i] = 0;
  return words;
}

absl::StatusOr<CUdeviceptr> AllocateOnGpu(const Driver& driver, size_t bytes) {
  CUdeviceptr at = 0;
  absl::Status status = driver.Check(driver.cuMemAlloc(&at, bytes), "cuMemAlloc");
  if (status.ok()) status = driver.Check(driver.cuMemsetD8(at, 0, bytes), "cuMemsetD8");
  if (!status.ok()) return status;
  return at;
}

}  // namespace gpu_probe
}  // namespace tcpx
