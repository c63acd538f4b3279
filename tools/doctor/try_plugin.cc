// The library that NCCL would load is loaded, and connects to itself by each device.
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/build_info.h"
#include "common/clock.h"
#include "nccl/client/net_client.h"
#include "tools/doctor/kept_lines.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr uint64_t kCommId = 0x7463707864;
// More than any connect to this host takes.
constexpr int64_t kConnectNs = 20 * kSecond;

ncclResult_t IgnoreEvent(void**, int, void*, int64_t, void*) { return ncclSuccess; }

// Listens on a device and dials it, as two ranks of this host would.
class SelfConnection {
 public:
  SelfConnection(NetClient* client, void* context) : client_(*client), context_(context) {}
  ~SelfConnection() {
    if (send_ != nullptr) client_.CloseSend(send_);
    if (receive_ != nullptr) client_.CloseRecv(receive_);
    if (listen_ != nullptr) client_.CloseListen(listen_);
  }

  // The function that failed, or null.
  const char* Open(int device) {
    alignas(uint64_t) std::array<char, NCCL_NET_HANDLE_MAXSIZE> handle{};
    if (client_.Listen(context_, device, handle.data(), &listen_) != ncclSuccess) return "listen";
    const int64_t until = MonotonicNanos() + kConnectNs;
    while (send_ == nullptr || receive_ == nullptr) {
      if (send_ == nullptr && client_.Connect(context_, device, handle.data(), &send_) != ncclSuccess) return "connect";
      if (receive_ == nullptr && client_.Accept(listen_, &receive_) != ncclSuccess) return "accept";
      if (MonotonicNanos() > until) return "connect (timed out)";
      usleep(200);
    }
    return nullptr;
  }

 private:
  NetClient& client_;
  void* const context_;
  void* listen_ = nullptr;
  void* send_ = nullptr;
  void* receive_ = nullptr;
};

std::string FixFailure(const std::string& reason) {
  if (absl::StrContains(reason, "TCPX_PORT_RANGE"))
    return "widen TCPX_PORT_RANGE, or end the processes that use its ports";
  if (absl::StrContains(reason, "secret")) return "correct TCPX_SECRET_FILE (docs/security.md)";
  return "NCCL_DEBUG=INFO shows the plugin's own lines; docs/doctor.md";
}

// What was found already is not said again.
std::string LastNews(const KeptLines& lines, Report* report) {
  std::string last;
  for (const std::string& warning : lines.warnings) {
    last = warning;
    if (!report->Says(warning)) report->Problem("plugin", absl::StrCat("it warns: ", warning), FixFailure(warning));
  }
  return last;
}

// Its decisions, in the words of a job's log.
void ReportDecisions(const KeptLines& lines, Report* report) {
  for (const std::string& info : lines.infos) {
    const bool version = absl::StartsWith(info, "version ");
    if (version || absl::StartsWith(info, "mode ")) report->Ok("plugin", "it says: " + info);
    if (version && !absl::StrContains(info, absl::StrCat("version ", kVersion))) {
      report->Note("plugin", absl::StrCat("the doctor is of version ", kVersion, ", the plugin is not"),
                   "use the tcpx_doctor that came with the plugin");
    }
  }
}

void TryDevice(NetClient* client, void* context, int device, Report* report) {
  ncclNetProperties_v12_t properties = {};
  if (client->GetProperties(device, &properties) != ncclSuccess) return;
  const std::string name = properties.name == nullptr ? "?" : properties.name;
  const char* failed = nullptr;
  {
    SelfConnection connection(client, context);
    failed = connection.Open(device);
  }
  const KeptLines lines = TakeLines();
  const std::string reason = LastNews(lines, report);
  ReportDecisions(lines, report);
  if (failed == nullptr) {
    report->Ok("plugin", absl::StrFormat("device %d, %s: listens, and connects to itself", device, name));
  } else {
    report->Problem(
        "plugin",
        absl::StrFormat("device %d, %s: %s failed%s%s", device, name, failed, reason.empty() ? "" : ": ", reason),
        FixFailure(reason));
  }
}

}  // namespace

void TryPlugin(const Patient& patient, const FoundLibraries& found, Report* report) {
  if (found.plugin.empty()) return;
  TakeLines();
  const auto client = NetClient::Open(found.plugin, found.version);
  if (!client.ok()) {
    report->Problem("plugin", std::string(client.status().message()), "install a plugin that fits this NCCL");
    return;
  }
  void* context = nullptr;
  const ncclResult_t result =
      (*client)->Init(&context, kCommId, NCCL_NET_TRAFFIC_CLASS_UNDEF, KeepPluginLine, IgnoreEvent);
  int count = 0;
  const bool counted = result == ncclSuccess && (*client)->Devices(&count) == ncclSuccess;
  const KeptLines lines = TakeLines();
  const std::string reason = LastNews(lines, report);
  ReportDecisions(lines, report);
  if (!counted) {
    report->Problem("plugin", absl::StrCat(found.plugin, ": init failed", reason.empty() ? "" : ": ", reason),
                    FixFailure(reason));
    return;
  }
  report->Ok("plugin", absl::StrFormat("%s loads, v%d, %d of %d devices", found.plugin, (*client)->version(), count,
                                       patient.devices.count()));
  for (int device = 0; device < count; ++device) TryDevice(client->get(), context, device, report);
  (*client)->Finalize(context);
}

}  // namespace doctor
}  // namespace tcpx
