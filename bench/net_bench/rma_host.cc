#include "bench/net_bench/rma_host.h"

#include "absl/strings/str_cat.h"
#include "bench/net_bench/plugin_host.h"
#include "bench/net_bench/plugin_log.h"

namespace tcpx {
namespace bench {
namespace {

// Any number that both sides share; another one than the network's, whose connections must not end with the group's.
constexpr uint64_t kCommId = 0x7463707872626e63;

}  // namespace

absl::StatusOr<std::unique_ptr<RmaHost>> RmaHost::Open(const Options& options, Position* position) {
  position->Enter(Stage::kOpenPlugin);
  absl::StatusOr<std::unique_ptr<RmaClient>> client = RmaClient::Open(options.plugin, options.api_version);
  if (!client.ok()) return client.status();
  std::unique_ptr<RmaHost> host(new RmaHost(*std::move(client), options.device, position));
  if (absl::Status status = host->Init(); !status.ok()) return status;
  return host;
}

absl::Status RmaHost::Init() {
  position_->Enter(Stage::kInit);
  absl::Status status = ResultStatus("init", client_->Init(&context_, kCommId, PluginLogger));
  int devices = 0;
  if (status.ok()) status = ResultStatus("devices", client_->Devices(&devices));
  if (!status.ok()) return status;
  if (device_ >= devices) {
    return absl::NotFoundError(absl::StrCat("the library reports ", devices, " devices; there is no device ", device_));
  }
  ncclNetProperties_v12_t properties = {};
  status = ResultStatus("getProperties", client_->GetProperties(device_, &properties));
  if (!status.ok()) return status;
  description_ =
      absl::StrCat(client_->name(), ", one-sided v", client_->version(), ", device ", device_, " of ", devices, ": ",
                   properties.name == nullptr ? "?" : properties.name, ", ", properties.speed, " Mbit/s");
  return absl::OkStatus();
}

absl::Status RmaHost::Close() {
  position_->Enter(Stage::kFinalize);
  absl::Status status = ResultStatus("finalize", client_->Finalize(context_));
  position_->Enter(Stage::kUnload);
  client_.reset();
  return status;
}

}  // namespace bench
}  // namespace tcpx
