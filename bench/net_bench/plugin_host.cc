#include "bench/net_bench/plugin_host.h"

#include <stdio.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/net_bench/plugin_log.h"

namespace tcpx {
namespace bench {
namespace {

const char* ResultName(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "ncclSuccess";
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
    case ncclInProgress:
      return "ncclInProgress";
    case ncclTimeout:
      return "ncclTimeout";
    default:
      return "an unknown result";
  }
}

// One communicator per run; any number that both sides share.
constexpr uint64_t kCommId = 0x7463707862656e63;

}  // namespace

std::string ResultText(const char* function, ncclResult_t result) {
  std::string text = absl::StrCat(function, " returned ", ResultName(result), " (", static_cast<int>(result), ")");
  const std::string warning = LastPluginWarning();
  if (!warning.empty()) absl::StrAppend(&text, "; the plugin's last WARN: ", warning);
  return text;
}

absl::Status ResultStatus(const char* function, ncclResult_t result) {
  return result == ncclSuccess ? absl::OkStatus() : absl::UnknownError(ResultText(function, result));
}

absl::StatusOr<std::unique_ptr<PluginHost>> PluginHost::Open(const Options& options, Position* position) {
  position->Enter(Stage::kOpenPlugin);
  absl::StatusOr<std::unique_ptr<NetClient>> client = NetClient::Open(options.plugin, options.api_version);
  if (!client.ok()) return client.status();
  if (options.traffic_class >= 0 && (*client)->version() < 10) {
    return absl::InvalidArgumentError(
        absl::StrCat("--traffic-class needs v10 of the API or newer, not v", (*client)->version()));
  }
  std::unique_ptr<PluginHost> host(new PluginHost(std::move(*client), options, position));
  absl::Status status = host->Init(options.traffic_class);
  if (status.ok()) status = host->CheckDevice();
  if (!status.ok()) return status;
  return host;
}

absl::Status PluginHost::Init(int traffic_class) {
  position_->Enter(Stage::kInit);
  static_assert(NCCL_NET_TRAFFIC_CLASS_UNDEF == -1, "as Options::traffic_class");
  const ncclProfilerCallback_t profiler = profile_ ? CountProfilerEvent : IgnoreProfilerEvent;
  return ResultStatus("init", client_->Init(&context_, kCommId, traffic_class, PluginLogger, profiler));
}

absl::Status PluginHost::CheckDevice() {
  int devices = 0;
  absl::Status status = ResultStatus("devices", client_->Devices(&devices));
  if (!status.ok()) return status;
  if (device_ >= devices) {
    return absl::NotFoundError(absl::StrCat("the plugin reports ", devices, " devices; there is no device ", device_,
                                            " (NCCL_SOCKET_IFNAME chooses interfaces)"));
  }
  ncclNetProperties_v12_t properties = {};
  status = ResultStatus("getProperties", client_->GetProperties(device_, &properties));
  if (!status.ok()) return status;
  description_ = absl::StrCat(client_->name(), ", v", client_->version(), ", device ", device_, " of ", devices, ": ",
                              properties.name == nullptr ? "?" : properties.name, ", ", properties.speed, " Mbit/s");
  return absl::OkStatus();
}

absl::Status PluginHost::Close() {
  position_->Enter(Stage::kFinalize);
  absl::Status status = ResultStatus("finalize", client_->Finalize(context_));
  position_->Enter(Stage::kUnload);
  client_.reset();
  if (profile_) fprintf(stderr, "profiler: %s\n", CountedProfilerEvents().c_str());
  return status;
}

}  // namespace bench
}  // namespace tcpx
