#include "net_socket/gpu/gpu_driver.h"

#include <dlfcn.h>

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tcpx {
namespace {

// The name of the first function that `library` lacks and must have; null: none.
const char* FindAll(void* library, GpuApi* api) {
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto** function, bool needed = true) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(library, name));
    if (*function == nullptr && needed && missing == nullptr) missing = name;
  };
  find("cuInit", &api->init);
  find("cuDeviceGetCount", &api->device_get_count);
  find("cuGetErrorName", &api->get_error_name);
  find("cuGetErrorString", &api->get_error_string);
  find("cuPointerGetAttribute", &api->pointer_get_attribute);
  find("cuDevicePrimaryCtxRetain", &api->primary_retain);
  find("cuDevicePrimaryCtxRelease_v2", &api->primary_release);
  find("cuCtxPushCurrent_v2", &api->context_push);
  find("cuCtxPopCurrent_v2", &api->context_pop);
  find("cuThreadExchangeStreamCaptureMode", &api->exchange_capture_mode);
  find("cuMemHostRegister_v2", &api->host_register);
  find("cuMemHostUnregister", &api->host_unregister);
  find("cuStreamCreate", &api->stream_create);
  find("cuStreamDestroy_v2", &api->stream_destroy);
  find("cuStreamQuery", &api->stream_query);
  find("cuEventCreate", &api->event_create);
  find("cuEventDestroy_v2", &api->event_destroy);
  find("cuEventRecord", &api->event_record);
  find("cuEventQuery", &api->event_query);
  find("cuMemcpyDtoHAsync_v2", &api->copy_from_device);
  find("cuMemcpyHtoDAsync_v2", &api->copy_to_device);
  find("cuMemcpy2DAsync_v2", &api->copy_2d);
  find("cuMemcpyAsync", &api->copy, false);
  find("cuStreamWriteValue64_v2", &api->write_word, false);
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
  const char* const missing = FindAll(loaded, &driver->api_);
  if (missing != nullptr) return absl::NotFoundError(absl::StrCat(library, " has no ", missing));
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
