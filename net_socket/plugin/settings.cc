#include "net_socket/plugin/settings.h"

#include <string>
#include <utility>
#include <vector>

#include "common/log.h"
#include "nccl/plugin_api.h"

namespace tcpx {

Settings::Settings() : cpu_facts_(ReadCpuFacts()) {
  std::vector<std::string> warnings;
  options_ = LoadOptions(nullptr, &warnings);
  for (const std::string& warning : warnings) TCPX_WARN("%s", warning);
  LoadSecret();
  traffic_classes_ = ParseTrafficClassMap(options_.traffic_class_map).value_or(TrafficClassMap());
  if (options_.socket_inline >= 0) {
    TCPX_INFO("NCCL_SOCKET_INLINE: every message up to TCPX_EXPRESS_BYTES (%d) is inline here", options_.express_bytes);
  }
}

void Settings::LoadSecret() {
  if (options_.secret_file.empty()) return;
  std::string warning;
  auto secret = Secret::Load(options_.secret_file, &warning);
  if (!warning.empty()) TCPX_WARN("%s", warning);
  secret_status_ = secret.status();
  if (!secret.ok()) return;
  secret_ = *std::move(secret);
  TCPX_INFO("TCPX_SECRET_FILE %s: every peer has to prove the secret that it holds", options_.secret_file);
}

absl::StatusOr<int> Settings::TrafficClass(int asked) const {
  const AskedClass value = asked == kNoTrafficClass ? options_.traffic_class : AskedClass{asked, false};
  if (value == AskedClass()) return kNoTrafficClass;
  return ResolveTrafficClass(value, traffic_classes_);
}

}  // namespace tcpx
