#include "tests/support/gpu_lab.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tcpx {
namespace {

constexpr char kFakePath[] = "tests/support/fake_cuda/libcuda.so.1";

template <typename Function>
bool Find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuLab>> GpuLab::Open() {
  const bool has_fake = access(kFakePath, R_OK) == 0;
  const char* const path = has_fake ? kFakePath : "libcuda.so.1";
  auto driver = GpuDriver::Load(path);
  if (!driver.ok() && has_fake) return absl::InternalError(driver.status().message());
  if (!driver.ok()) return driver.status();
  std::unique_ptr<GpuLab> lab(new GpuLab);
  lab->driver_ = *std::move(driver);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  lab->fake_ = FakeCuda::Of(library);
  if (!Find(library, "cuMemAlloc_v2", &lab->allocate_) || !Find(library, "cuMemFree_v2", &lab->free_) ||
      !Find(library, "cuMemcpyHtoD_v2", &lab->write_) || !Find(library, "cuMemcpyDtoH_v2", &lab->read_)) {
    return absl::NotFoundError("the driver lacks functions that the tests need");
  }
  const absl::Status status =
      lab->driver_->Check(lab->driver_->api().primary_retain(&lab->context_, 0), "cuDevicePrimaryCtxRetain");
  if (!status.ok()) return status;
  if (lab->is_fake()) lab->fake_.reset();
  return lab;
}

FakeCudaCounts GpuLab::counts() const {
  FakeCudaCounts counts{};
  if (is_fake()) fake_.count(&counts);
  return counts;
}

void GpuLab::Do(int result, const char* call) {
  const absl::Status status = driver_->Check(result, call);
  if (status.ok()) return;
  std::fprintf(stderr, "gpu_lab: %s\n", std::string(status.message()).c_str());
  std::abort();
}

CuAddress GpuLab::Allocate(size_t bytes) {
  GpuScope scope(*driver_, context_);
  CuAddress address = 0;
  Do(allocate_(&address, bytes), "cuMemAlloc");
  return address;
}

void GpuLab::Free(CuAddress address) {
  GpuScope scope(*driver_, context_);
  Do(free_(address), "cuMemFree");
}

void GpuLab::Write(CuAddress to, const void* from, size_t bytes) {
  GpuScope scope(*driver_, context_);
  if (bytes > 0) Do(write_(to, from, bytes), "cuMemcpyHtoD");
}

void GpuLab::Read(void* to, CuAddress from, size_t bytes) {
  GpuScope scope(*driver_, context_);
  if (bytes > 0) Do(read_(to, from, bytes), "cuMemcpyDtoH");
}

}  // namespace tcpx
