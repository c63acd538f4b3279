#include "bench/gpu_probe/gdr.h"

#include <dlfcn.h>

#include <cstddef>

#include "absl/status/status.h"

namespace tcpx {
namespace gpu_probe {
namespace {

constexpr size_t kPage = 64 << 10;  // GPU_PAGE_SIZE

struct GdrHandle {  // gdr_mh_t
  unsigned long number = 0;
};

struct Gdr {
  void* (*open)() = nullptr;
  int (*pin)(void* gdr, unsigned long at, size_t bytes, uint64_t token, uint32_t space, GdrHandle* handle) = nullptr;
  int (*map)(void* gdr, GdrHandle handle, void** data, size_t bytes) = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

absl::StatusOr<volatile uint64_t*> MapByGdr(uint64_t at) {
  void* const library = dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError("not installed");
  Gdr gdr;
  if (!Find(library, "gdr_open", &gdr.open) || !Find(library, "gdr_pin_buffer", &gdr.pin) ||
      !Find(library, "gdr_map", &gdr.map)) {
    return absl::NotFoundError("libgdrapi.so.2 lacks a function");
  }
  void* const opened = gdr.open();
  if (opened == nullptr) return absl::NotFoundError("gdr_open: the kernel module gdrdrv is not loaded");
  GdrHandle handle;
  void* data = nullptr;
  if (gdr.pin(opened, at, kPage, 0, 0, &handle) != 0) return absl::NotFoundError("gdr_pin_buffer failed");
  if (gdr.map(opened, handle, &data, kPage) != 0) return absl::NotFoundError("gdr_map failed");
  return static_cast<volatile uint64_t*>(data);
}

}  // namespace gpu_probe
}  // namespace tcpx
