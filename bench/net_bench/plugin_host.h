// plugin_host.h: one loaded plugin with one context, as a communicator of NCCL has it.
//
// Threads: one driver. Lifetime: outlives its links.
// Errors:  kInvalidArgument where the plugin is too old for an option; else a Status with the function's name, the
//          result's, and the plugin's last WARN.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/shared_page.h"
#include "nccl/client/net_client.h"

namespace tcpx {
namespace bench {

// "isend returned ncclSystemError (last WARN: ...)".
std::string ResultText(const char* function, ncclResult_t result);
// OK for ncclSuccess.
absl::Status ResultStatus(const char* function, ncclResult_t result);

class PluginHost {
 public:
  // Opens, initialises, and checks that the device is there.
  static absl::StatusOr<std::unique_ptr<PluginHost>> Open(const Options& options, Position* position);
  // Finalizes and unloads. With --profile the counts go to stderr.
  absl::Status Close();

  NetClient* client() const { return client_.get(); }
  void* context() const { return context_; }
  int device() const { return device_; }
  // The parent that each isend and irecv names to the profiler; null without one.
  void* profiler_parent() { return profile_ ? this : nullptr; }
  // "tcpx, v12, device 0 of 1: lo, 10000 Mbit/s".
  const std::string& description() const { return description_; }

 private:
  PluginHost(std::unique_ptr<NetClient> client, const Options& options, Position* position)
      : client_(std::move(client)), device_(options.device), profile_(options.profile), position_(position) {}
  absl::Status Init(int traffic_class);
  absl::Status CheckDevice();

  std::unique_ptr<NetClient> client_;
  const int device_;
  const bool profile_;
  Position* const position_;
  void* context_ = nullptr;
  std::string description_;
};

}  // namespace bench
}  // namespace tcpx
