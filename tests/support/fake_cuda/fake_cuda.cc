#include "tests/support/fake_cuda/fake_cuda.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net_socket/gpu/gpu_driver.h"
#include "tests/support/fake_cuda/copy_thread.h"
#include "tests/support/fake_cuda/device_memory.h"

namespace tcpx {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kCaptureUnsupported = 900;
constexpr int kGlobalMode = 0;

struct Failure {
  int passes;
  int error;
};

struct State {
  std::mutex mutex;
  DeviceMemory memory;
  std::map<FakeEvent*, std::unique_ptr<FakeEvent>> events;
  std::map<std::string, Failure> failures;
  bool capturing = false;
  bool capture_broken = false;
  uint64_t queries = 0;
  CopyThread engine{&mutex, &memory};
};

State& TheState() {
  static State state;
  return state;
}

thread_local std::vector<CuContext> t_contexts;
thread_local int t_mode = kGlobalMode;

CuContext PrimaryContext() {
  static char context;
  return reinterpret_cast<CuContext>(&context);
}

// What `function` has to return before it does anything. Under the mutex.
int Injected(const char* function) {
  auto found = TheState().failures.find(function);
  if (found == TheState().failures.end()) return kCuSuccess;
  if (found->second.passes-- > 0) return kCuSuccess;
  found->second.passes = 0;
  return found->second.error;
}

int Enter(const char* function, bool forbidden_in_capture) {
  State& state = TheState();
  if (t_contexts.empty()) return kInvalidContext;
  if (forbidden_in_capture && state.capturing && t_mode != kCuCaptureRelaxed) {
    state.capture_broken = true;
    return kCaptureUnsupported;
  }
  return Injected(function);
}

int Enqueue(const char* function, const FakeCopy& copy, CuStream stream) {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  const int result = Enter(function, false);
  if (result != kCuSuccess) return result;
  if (state.memory.View(copy.device, copy.span()) == nullptr) return kInvalidValue;
  FakeStream::Step step;
  step.copy = copy;
  state.engine.Enqueue(reinterpret_cast<FakeStream*>(stream), step);
  return kCuSuccess;
}

FakeCopy Plain(bool to_device, CuAddress device, const void* host, size_t bytes) {
  FakeCopy copy;
  copy.to_device = to_device;
  copy.device = device;
  copy.host = static_cast<char*>(const_cast<void*>(host));
  copy.width = bytes;
  return copy;
}

}  // namespace
}  // namespace tcpx

using namespace tcpx;  // NOLINT: the driver's functions follow

#pragma GCC visibility push(default)
extern "C" {

int cuInit(unsigned) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  return Injected("cuInit");
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return kCuSuccess;
}

int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return kCuSuccess;
}

int cuGetErrorString(int, const char** text) {
  *text = "the fake driver says so";
  return kCuSuccess;
}

int cuPointerGetAttribute(void* value, int attribute, CuAddress at) {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  const bool device = state.memory.View(at, 1) != nullptr;
  if (!device && !state.memory.IsPinned(at)) return kInvalidValue;
  const unsigned type = device ? kCuMemoryDevice : kCuMemoryHost;
  const unsigned managed = 0;
  const int ordinal = 0;
  const CuContext context = PrimaryContext();
  switch (attribute) {
    case kCuPointerContext:
      std::memcpy(value, &context, sizeof(context));
      return kCuSuccess;
    case kCuPointerMemoryType:
      std::memcpy(value, &type, sizeof(type));
      return kCuSuccess;
    case kCuPointerIsManaged:
      std::memcpy(value, &managed, sizeof(managed));
      return kCuSuccess;
    case kCuPointerDevice:
      std::memcpy(value, &ordinal, sizeof(ordinal));
      return kCuSuccess;
    default:
      return kInvalidValue;
  }
}

int cuDevicePrimaryCtxRetain(CuContext* context, int) {
  *context = PrimaryContext();
  return kCuSuccess;
}

int cuDevicePrimaryCtxRelease_v2(int) { return kCuSuccess; }

int cuCtxPushCurrent_v2(CuContext context) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Injected("cuCtxPushCurrent");
  if (result == kCuSuccess) t_contexts.push_back(context);
  return result;
}

int cuCtxPopCurrent_v2(CuContext* context) {
  if (t_contexts.empty()) return kInvalidContext;
  *context = t_contexts.back();
  t_contexts.pop_back();
  return kCuSuccess;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, t_mode);
  return kCuSuccess;
}

int cuMemAlloc_v2(CuAddress* address, size_t bytes) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  *address = TheState().memory.Allocate(bytes);
  return *address == 0 ? kOutOfMemory : kCuSuccess;
}

int cuMemFree_v2(CuAddress address) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  return TheState().memory.Free(address) ? kCuSuccess : kInvalidValue;
}

int cuMemcpyHtoD_v2(CuAddress to, const void* from, size_t bytes) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  char* const view = TheState().memory.View(to, bytes);
  if (view == nullptr) return kInvalidValue;
  std::memcpy(view, from, bytes);
  return kCuSuccess;
}

int cuMemcpyDtoH_v2(void* to, CuAddress from, size_t bytes) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const char* const view = TheState().memory.View(from, bytes);
  if (view == nullptr) return kInvalidValue;
  std::memcpy(to, view, bytes);
  return kCuSuccess;
}

int cuMemHostRegister_v2(void* data, size_t bytes, unsigned) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuMemHostRegister", true);
  if (result != kCuSuccess) return result;
  return TheState().memory.Pin(data, bytes) ? kCuSuccess : kInvalidValue;
}

int cuMemHostUnregister(void* data) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuMemHostUnregister", true);
  if (result != kCuSuccess) return result;
  return TheState().memory.Unpin(data) ? kCuSuccess : kInvalidValue;
}

int cuStreamCreate(CuStream* stream, unsigned) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuStreamCreate", false);
  if (result != kCuSuccess) return result;
  FakeStream* const made = new FakeStream;
  TheState().engine.Add(made);
  *stream = reinterpret_cast<CuStream>(made);
  return kCuSuccess;
}

int cuStreamQuery(CuStream stream) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuStreamQuery", true);
  ++TheState().queries;
  if (result != kCuSuccess) return result;
  return reinterpret_cast<FakeStream*>(stream)->steps.empty() ? kCuSuccess : kCuNotReady;
}

int cuStreamDestroy_v2(CuStream stream) {
  std::unique_lock<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuStreamDestroy", false);
  if (result != kCuSuccess) return result;
  FakeStream* const gone = reinterpret_cast<FakeStream*>(stream);
  TheState().engine.Await(gone, &lock);
  TheState().engine.Remove(gone);
  delete gone;
  return kCuSuccess;
}

int cuEventCreate(CuEvent* event, unsigned) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuEventCreate", false);
  if (result != kCuSuccess) return result;
  FakeEvent* const made = new FakeEvent;
  TheState().events.emplace(made, made);
  *event = reinterpret_cast<CuEvent>(made);
  return kCuSuccess;
}

int cuEventDestroy_v2(CuEvent event) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  return TheState().events.erase(reinterpret_cast<FakeEvent*>(event)) == 0 ? kInvalidValue : kCuSuccess;
}

int cuEventRecord(CuEvent event, CuStream stream) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuEventRecord", false);
  if (result != kCuSuccess) return result;
  FakeStream::Step step;
  step.event = reinterpret_cast<FakeEvent*>(event);
  step.recorded = ++step.event->recorded;
  TheState().engine.Enqueue(reinterpret_cast<FakeStream*>(stream), step);
  return kCuSuccess;
}

int cuEventQuery(CuEvent event) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuEventQuery", true);
  ++TheState().queries;
  if (result != kCuSuccess) return result;
  return reinterpret_cast<FakeEvent*>(event)->done() ? kCuSuccess : kCuNotReady;
}

int cuMemcpyDtoHAsync_v2(void* to, CuAddress from, size_t bytes, CuStream stream) {
  return Enqueue("cuMemcpyDtoHAsync", Plain(false, from, to, bytes), stream);
}

int cuMemcpyHtoDAsync_v2(CuAddress to, const void* from, size_t bytes, CuStream stream) {
  return Enqueue("cuMemcpyHtoDAsync", Plain(true, to, from, bytes), stream);
}

int cuMemcpy2DAsync_v2(const CuCopy2D* given, CuStream stream) {
  const bool to_device = given->source_type == kCuMemoryHost && given->target_type == kCuMemoryDevice;
  const bool simple = given->source_pitch == given->target_pitch && given->source_pitch >= given->width &&
                      (given->source_x | given->source_y | given->target_x | given->target_y) == 0;
  if (!to_device || !simple) return kInvalidValue;
  FakeCopy copy = Plain(true, given->target_device, given->source_host, given->width);
  copy.pitch = given->source_pitch;
  copy.height = given->height;
  return Enqueue("cuMemcpy2DAsync", copy, stream);
}

int cuMemcpyAsync(CuAddress to, CuAddress from, size_t bytes, CuStream stream) {
  bool to_device = false;
  char* view_from = nullptr;
  {
    std::lock_guard<std::mutex> lock(TheState().mutex);
    to_device = TheState().memory.View(to, bytes) != nullptr;
    view_from = TheState().memory.View(from, bytes);
  }
  if (!to_device) return Enqueue("cuMemcpyAsync", Plain(false, from, reinterpret_cast<void*>(to), bytes), stream);
  const void* const source = view_from != nullptr ? view_from : reinterpret_cast<const void*>(from);
  return Enqueue("cuMemcpyAsync", Plain(true, to, source, bytes), stream);
}

int cuStreamWriteValue64_v2(CuStream stream, CuAddress at, uint64_t value, unsigned) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  const int result = Enter("cuStreamWriteValue64", false);
  if (result != kCuSuccess) return result;
  if (at % sizeof(value) != 0 || TheState().memory.View(at, sizeof(value)) == nullptr) return kInvalidValue;
  FakeStream::Step step;
  step.word = at;
  step.value = value;
  TheState().engine.Enqueue(reinterpret_cast<FakeStream*>(stream), step);
  return kCuSuccess;
}

void FakeCudaReset() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.failures.clear();
  state.capturing = state.capture_broken = false;
  state.engine.held = false;
  state.engine.delay_us_max = 0;
  state.engine.Wake();
}

void FakeCudaDelays(uint64_t seed, unsigned most_us) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  TheState().engine.random.seed(seed);
  TheState().engine.delay_us_max = most_us;
}

void FakeCudaFail(const char* function, int passes, int error) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  TheState().failures[function] = {passes, error};
}

void FakeCudaHold(int held) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  TheState().engine.held = held != 0;
  TheState().engine.Wake();
}

void FakeCudaCapture(int on) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  TheState().capturing = on != 0;
}

void* FakeCudaView(uint64_t address) {
  std::lock_guard<std::mutex> lock(TheState().mutex);
  return TheState().memory.View(address, 1);
}

void FakeCudaThreadState(int* contexts, int* mode) {
  *contexts = static_cast<int>(t_contexts.size());
  *mode = t_mode;
}

void FakeCudaCount(FakeCudaCounts* counts) {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  counts->pinned_bytes = state.memory.pinned_bytes();
  counts->pinned_bytes_max = state.memory.pinned_bytes_max();
  counts->streams = state.engine.streams();
  counts->events = state.events.size();
  counts->copies = state.engine.copies;
  counts->strided_copies = state.engine.strided_copies;
  counts->waiting = state.engine.waiting();
  counts->queries = state.queries;
  counts->capture_broken = state.capture_broken ? 1 : 0;
}

}  // extern "C"
#pragma GCC visibility pop
