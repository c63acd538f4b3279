#include "net_socket/gpu/gdr_copy.h"

#include <dlfcn.h>

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace tcpx {
namespace {

constexpr uintptr_t kPage = 64 << 10;     // GPU_PAGE_SIZE
constexpr int kUsePersistentMapping = 1;  // GDR_ATTR_USE_PERSISTENT_MAPPING

absl::Status Refused(const char* call, int error) {
  return absl::UnavailableError(absl::StrCat(call, " failed: ", ErrnoText(error)));
}

}  // namespace

// The library stays loaded: NCCL may use it too.
absl::StatusOr<std::unique_ptr<GdrCopy>> GdrCopy::Load(const char* library) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* const why = dlerror();
    return absl::NotFoundError(why == nullptr ? library : why);
  }
  Api api{};
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto** function) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(loaded, name));
    if (*function == nullptr && missing == nullptr) missing = name;
  };
  find("gdr_open", &api.open);
  find("gdr_close", &api.close);
  find("gdr_pin_buffer", &api.pin);
  find("gdr_unpin_buffer", &api.unpin);
  find("gdr_map", &api.map);
  find("gdr_unmap", &api.unmap);
  find("gdr_copy_to_mapping", &api.copy_to_mapping);
  find("gdr_get_attribute", &api.get_attribute);
  if (missing != nullptr) return absl::NotFoundError(absl::StrCat(library, " has no ", missing));
  void* const gdr = api.open();
  if (gdr == nullptr) return absl::NotFoundError("gdr_open failed: is the kernel module gdrdrv loaded?");
  std::unique_ptr<GdrCopy> opened(new GdrCopy(api, gdr));
  int persistent = 0;
  if (api.get_attribute(gdr, kUsePersistentMapping, &persistent) != 0 || persistent == 0) {
    return absl::NotFoundError(
        "gdrdrv makes no persistent mappings: load that of GDRCopy 2.5 or later, without "
        "use_persistent_mapping=0");
  }
  return opened;
}

GdrCopy::~GdrCopy() {
  for (const auto& [data, window] : windows_) Close(window);
  (void)api_.close(gdr_);
}

absl::Status GdrCopy::Map(const char* data, size_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = at / kPage * kPage;
  Window window;
  window.pages_bytes = (at + bytes - begin + kPage - 1) / kPage * kPage;
  int error = api_.pin(gdr_, begin, window.pages_bytes, 0, 0, &window.place.handle);
  if (error != 0) return Refused("gdr_pin_buffer", error);
  void* pages = nullptr;
  error = api_.map(gdr_, window.place.handle, &pages, window.pages_bytes);
  if (error != 0) {
    (void)api_.unpin(gdr_, window.place.handle);
    return Refused("gdr_map", error);
  }
  window.pages = static_cast<char*>(pages);
  window.place.view = window.pages + (at - begin);
  windows_.emplace(std::make_pair(data, bytes), window);
  return absl::OkStatus();
}

void GdrCopy::Unmap(const char* data, size_t bytes) {
  const auto window = windows_.find({data, bytes});
  if (window == windows_.end()) return;
  Close(window->second);
  windows_.erase(window);
}

void GdrCopy::Close(const Window& window) {
  (void)api_.unmap(gdr_, window.place.handle, window.pages, window.pages_bytes);
  (void)api_.unpin(gdr_, window.place.handle);
}

// Where windows overlap it may find none: such memory is then written as what is not mapped.
GdrCopy::Place GdrCopy::Find(const char* at, size_t bytes) const {
  auto window = windows_.upper_bound({at, SIZE_MAX});
  if (window == windows_.begin()) return {};
  --window;
  const auto [data, size] = window->first;
  const size_t offset = static_cast<size_t>(at - data);
  if (offset > size || bytes > size - offset) return {};
  return {window->second.place.handle, window->second.place.view + offset};
}

void GdrCopy::Write(const Place& to, absl::string_view bytes) const {
  if (bytes.empty()) return;
  (void)api_.copy_to_mapping(to.handle, to.view, bytes.data(), bytes.size());
  __sync_synchronize();  // else the read could be answered before the writes have left the processor
  (void)*static_cast<volatile char*>(to.view + bytes.size() - 1);
}

uint64_t GdrCopy::ReadWord(const Place& at) {
  return __atomic_load_n(reinterpret_cast<uint64_t*>(at.view), __ATOMIC_ACQUIRE);
}

// A plain store of the whole word: copy_to_mapping does not promise that, and a locked instruction does not work on
// such memory. The barrier keeps the processor from holding it back; PCIe keeps what is sent later behind it.
void GdrCopy::WriteWord(const Place& at, uint64_t value) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(at.view), value, __ATOMIC_RELEASE);
  __sync_synchronize();
}

}  // namespace tcpx
