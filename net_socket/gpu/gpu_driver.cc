#include "net_socket/gpu/gpu_driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tcpx {
namespace {

template <typename Function>
const char* Find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function == nullptr ? name : nullptr;
}

// The name of the first function that `library` lacks; null: none.
const char* FindContexts(void* library, GpuApi* api) {
  const char* missing = Find(library, "cuInit", &api->init);
  if (missing == nullptr) missing = Find(library, "cuDeviceGetCount", &api->device_get_count);
  if (missing == nullptr) missing = Find(library, "cuGetErrorName", &api->get_error_name);
  if (missing == nullptr) missing = Find(library, "cuGetErrorString", &api->get_error_string);
  if (missing == nullptr) missing = Find(library, "cuPointerGetAttribute", &api->pointer_get_attribute);
  if (missing == nullptr) missing = Find(library, "cuDevicePrimaryCtxRetain", &api->primary_retain);
  if (missing == nullptr) missing = Find(library, "cuDevicePrimaryCtxRelease_v2", &api->primary_release);
  if (missing == nullptr) missing = Find(library, "cuCtxPushCurrent_v2", &api->context_push);
  if (missing == nullptr) missing = Find(library, "cuCtxPopCurrent_v2", &api->context_pop);
  if (missing == nullptr) missing = Find(library, "cuThreadExchangeStreamCaptureMode", &api->exchange_capture_mode);
  return missing;
}

const char* FindCopies(void* library, GpuApi* api) {
  const char* missing = Find(library, "cuMemHostRegister_v2", &api->host_register);
  if (missing == nullptr) missing = Find(library, "cuMemHostUnregister", &api->host_unregister);
  if (missing == nullptr) missing = Find(library, "cuStreamCreate", &api->stream_create);
  if (missing == nullptr) missing = Find(library, "cuStreamDestroy_v2", &api->stream_destroy);
  if (missing == nullptr) missing = Find(library, "cuStreamQuery", &api->stream_query);
  if (missing == nullptr) missing = Find(library, "cuEventCreate", &api->event_create);
  if (missing == nullptr) missing = Find(library, "cuEventDestroy_v2", &api->event_destroy);
  if (missing == nullptr) missing = Find(library, "cuEventRecord", &api->event_record);
  if (missing == nullptr) missing = Find(library, "cuEventQuery", &api->event_query);
  if (missing == nullptr) missing = Find(library, "cuMemcpyDtoHAsync_v2", &api->copy_from_device);
  if (missing == nullptr) missing = Find(library, "cuMemcpyHtoDAsync_v2", &api->copy_to_device);
  if (missing == nullptr) missing = Find(library, "cuMemcpy2DAsync_v2", &api->copy_2d);
  return missing;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuDriver>> GpuDriver::Load(const char* library) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* const why = dlerror();
    return absl::NotFoundError(why == nullptr ? library : why);
  }
  std::unique_ptr<GpuDriver> driver(new GpuDriver);
  const char* missing = FindContexts(loaded, &driver->api_);
  if (missing == nullptr) missing = FindCopies(loaded, &driver->api_);
  if (missing != nullptr) return absl::NotFoundError(absl::StrCat(library, " has no ", missing));
  (void)Find(loaded, "cuMemcpyAsync", &driver->api_.copy);
  (void)Find(loaded, "cuStreamWriteValue64_v2", &driver->api_.write_word);
  int devices = 0;
  absl::Status status = driver->Check(driver->api_.init(0), "cuInit");
  if (status.ok()) status = driver->Check(driver->api_.device_get_count(&devices), "cuDeviceGetCount");
  if (!status.ok()) return absl::NotFoundError(status.message());
  if (devices == 0) return absl::NotFoundError("the CUDA driver offers no GPU");
  return driver;
}

absl::Status GpuDriver::Check(int result, const char* call) const {
  if (result == kCuSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.get_error_name(result, &name) != kCuSuccess || name == nullptr) name = "an unknown error";
  if (api_.get_error_string(result, &text) != kCuSuccess || text == nullptr) text = "no description";
  return absl::AbortedError(absl::StrFormat("the CUDA driver's %s failed: %s (%d): %s", call, name, result, text));
}

// The mode first: making a context current is among what a capturing application's threads may not do.
GpuScope::GpuScope(const GpuDriver& driver, CuContext context) : driver_(driver) {
  status_ = driver.Check(driver.api().exchange_capture_mode(&capture_mode_), "cuThreadExchangeStreamCaptureMode");
  if (!status_.ok()) return;
  status_ = driver.Check(driver.api().context_push(context), "cuCtxPushCurrent");
  if (!status_.ok()) (void)driver.api().exchange_capture_mode(&capture_mode_);
}

GpuScope::~GpuScope() {
  if (!status_.ok()) return;
  CuContext popped = nullptr;
  (void)driver_.api().context_pop(&popped);
  (void)driver_.api().exchange_capture_mode(&capture_mode_);
}

}  // namespace tcpx
