// libgdrapi.so.2 of the tests (fake_gdr.h).
#include <dlfcn.h>
#include <errno.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr unsigned long kPage = 64 << 10;

struct Pinned {
  void* view = nullptr;  // null: not mapped
  unsigned long at = 0;
  size_t bytes = 0;
};

struct State {
  std::mutex mutex;
  std::map<unsigned long, Pinned> pinned;
  unsigned long next = 1;
  uint64_t written = 0;
  int pin_error = 0;
  bool open_fails = false;
  int opened = 0;
  int persistent = 1;
  int map_error = 0;
};

State& TheState() {
  static State state;
  return state;
}

void* ViewOf(unsigned long at) {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (cuda == nullptr) return nullptr;
  const auto view = reinterpret_cast<void* (*)(uint64_t)>(dlsym(cuda, "FakeCudaView"));
  dlclose(cuda);
  return view == nullptr ? nullptr : view(at);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

struct FakeHandle {
  unsigned long number;
};

void* gdr_open() {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  if (TheState().open_fails) return nullptr;
  ++TheState().opened;
  return &TheState();
}

int gdr_get_attribute(void*, int attribute, int* value) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  *value = TheState().persistent;
  return attribute == 1 ? 0 : EINVAL;
}

int gdr_close(void*) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  --TheState().opened;
  return 0;
}

int gdr_pin_buffer(void*, unsigned long at, size_t bytes, uint64_t, uint32_t, FakeHandle* handle) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  if (TheState().pin_error != 0) return TheState().pin_error;
  if (at % kPage != 0 || bytes % kPage != 0 || bytes == 0 || ViewOf(at) == nullptr) return EINVAL;
  handle->number = TheState().next++;
  TheState().pinned[handle->number] = {nullptr, at, bytes};
  return 0;
}

int gdr_unpin_buffer(void*, FakeHandle handle) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const auto found = TheState().pinned.find(handle.number);
  if (found == TheState().pinned.end() || found->second.view != nullptr) return EINVAL;
  TheState().pinned.erase(found);
  return 0;
}

int gdr_map(void*, FakeHandle handle, void** view, size_t bytes) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  Pinned& pinned = TheState().pinned.at(handle.number);
  if (pinned.view != nullptr || bytes != pinned.bytes) return EINVAL;
  if (TheState().map_error != 0) return TheState().map_error;
  *view = pinned.view = ViewOf(pinned.at);
  return 0;
}

int gdr_unmap(void*, FakeHandle handle, void* view, size_t bytes) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  Pinned& pinned = TheState().pinned.at(handle.number);
  if (pinned.view != view || bytes != pinned.bytes) return EINVAL;
  pinned.view = nullptr;
  return 0;
}

int gdr_copy_to_mapping(FakeHandle, void* to, const void* from, size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(TheState().mutex);
    TheState().written += bytes;
  }
  std::memcpy(to, from, bytes);
  return 0;
}

int FakeGdrOpened() {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  return TheState().opened;
}

int FakeGdrPinned() {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  return static_cast<int>(TheState().pinned.size());
}

uint64_t FakeGdrWritten() {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  return TheState().written;
}

void FakeGdrFail(const char* function, int error) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const std::string name(function);
  if (name == "gdr_open") TheState().open_fails = error != 0;
  if (name == "gdr_get_attribute") TheState().persistent = error == 0 ? 1 : 0;
  if (name == "gdr_pin_buffer") TheState().pin_error = error;
  if (name == "gdr_map") TheState().map_error = error;
}

}  // extern "C"
#pragma GCC visibility pop
