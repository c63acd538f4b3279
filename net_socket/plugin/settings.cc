#include "net_socket/plugin/settings.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/build_info.h"
#include "common/log.h"
#include "common/unknown_params.h"
#include "nccl/plugin_api.h"

namespace tcpx {

Settings::Settings() : cpu_facts_(ReadCpuFacts()) {
  std::vector<std::string> warnings;
  std::vector<std::string> ours;
  options_ = LoadOptions(nullptr, &warnings, &ours);
  for (const std::string& warning : warnings) TCPX_WARN("%s", warning);
  for (const std::string& warning : UnknownParameters(environ)) TCPX_WARN("%s", warning);
  const std::string id = BuildId();
  TCPX_INFO("version %s%s; %s", kVersion, id.empty() ? "" : absl::StrCat(", build id ", id),
            ours.empty() ? "no TCPX_ variable is in effect" : absl::StrJoin(ours, " "));
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
