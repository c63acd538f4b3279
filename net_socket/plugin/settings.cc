#include "net_socket/plugin/settings.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/build_info.h"
#include "common/log.h"
#include "common/params.h"
#include "nccl/plugin_api.h"
#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/seals.h"

namespace tcpx {
namespace {

// Whatever a user may have meant by it: of NCCL's own words for this nothing is known.
bool IsOff(absl::string_view value) {
  for (const char* off : {"", "0", "off", "false", "no"}) {
    if (absl::EqualsIgnoreCase(value, off)) return true;
  }
  return false;
}

// The name of a variable that asks NCCL itself for encryption; empty: none does. Its own function for that
// (ncclSetEncryption, NCCL 2.32) can't be seen from here.
std::string AsksForEncryption(const char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::pair<absl::string_view, absl::string_view> variable =
        absl::StrSplit(absl::string_view(*environment), absl::MaxSplits('=', 1));
    const absl::string_view name = variable.first;
    const bool asks = absl::StrContains(name, "ENCRYPT") || absl::EndsWith(name, "_TLS") ||
                      absl::StrContains(name, "_TLS_") || absl::EndsWith(name, "_PSK");
    if (!absl::StartsWith(name, "NCCL_") || !asks || absl::EndsWith(name, "_DISABLE")) continue;
    if (!IsOff(variable.second)) return std::string(name);
  }
  return "";
}

}  // namespace

Settings::Settings() : cpu_facts_(ReadCpuFacts()) {
  std::vector<std::string> warnings;
  std::vector<std::string> ours;
  options_ = LoadOptions(nullptr, &warnings, &ours);
  for (const std::string& warning : warnings) TCPX_WARN("%s", warning);
  for (const std::string& warning : UnknownParameters(environ)) TCPX_WARN("%s", warning);
  const std::string id = BuildId();
  TCPX_INFO("version %s%s; %s", kVersion, id.empty() ? "" : absl::StrCat(", build id ", id),
            ours.empty() ? "no TCPX_ variable is in effect" : absl::StrJoin(ours, " "));
  security_ = Secure();
  if (!security_.ok()) {
    TCPX_WARN("%s; until this is corrected every listen and connect fails", std::string(security_.message()));
  }
  const std::string asks = options_.encrypt ? "" : AsksForEncryption(environ);
  if (!asks.empty()) {
    TCPX_WARN("%s is set, which does not reach this plugin: its connections are not encrypted; set TCPX_ENCRYPT=1 too",
              asks);
  }
  traffic_classes_ = ParseTrafficClassMap(options_.traffic_class_map).value_or(TrafficClassMap());
  if (options_.socket_inline >= 0) {
    TCPX_INFO("NCCL_SOCKET_INLINE: every message up to TCPX_EXPRESS_BYTES (%d) is inline here", options_.express_bytes);
  }
}

absl::Status Settings::Secure() {
  if (!options_.refused.empty()) return absl::InvalidArgumentError(options_.refused);
  const std::string misspelt = MisspeltSecurity(environ);
  if (!misspelt.empty()) return absl::InvalidArgumentError(misspelt);
  absl::Status loaded = LoadSecret();
  if (!loaded.ok()) return loaded;
  if (options_.encrypt) return Encrypt();
  if (options_.require_encryption) {
    return absl::InvalidArgumentError(
        "TCPX_REQUIRE_ENCRYPTION is on, and TCPX_ENCRYPT is not: set TCPX_ENCRYPT=1 and TCPX_SECRET_FILE on all ranks");
  }
  if (!options_.encrypt_cipher.empty()) {
    return absl::InvalidArgumentError(
        "TCPX_ENCRYPT_CIPHER is set, and TCPX_ENCRYPT is not on: set TCPX_ENCRYPT=1, or unset TCPX_ENCRYPT_CIPHER");
  }
  return absl::OkStatus();
}

absl::Status Settings::LoadSecret() {
  if (options_.secret_file.empty()) return absl::OkStatus();
  auto secret = Secret::Load(options_.secret_file);
  if (!secret.ok()) return secret.status();
  secret_ = *std::move(secret);
  TCPX_INFO("TCPX_SECRET_FILE %s: every peer has to prove the secret that it holds", options_.secret_file);
  return absl::OkStatus();
}

absl::Status Settings::Encrypt() {
  if (secret_ == nullptr) {
    return absl::InvalidArgumentError("TCPX_ENCRYPT=1 needs a secret that all ranks share: set TCPX_SECRET_FILE too");
  }
  std::string by;
  std::string slow;
  std::vector<CipherSuite> suites = FindSuites(&by, &slow);
  const std::string& only = options_.encrypt_cipher;
  const auto other = [&only](CipherSuite suite) { return !only.empty() && only != SuiteName(suite); };
  suites.erase(std::remove_if(suites.begin(), suites.end(), other), suites.end());
  if (suites.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("TCPX_ENCRYPT_CIPHER ", only, " is unknown or not available here (ciphers by ", by, ")"));
  }
  if (only.empty() && !slow.empty()) {
    TCPX_WARN("TCPX_ENCRYPT: only %s is available here, which is slow: %s", SuiteName(suites.front()), slow);
  }
  std::vector<std::string> names;
  for (const CipherSuite suite : suites) names.push_back(SuiteName(suite));
  TCPX_INFO("TCPX_ENCRYPT: every socket is encrypted, by %s (%s)", absl::StrJoin(names, " or "), by);
  secret_->Encrypt(std::make_unique<Encryption>(std::move(suites)));
  return absl::OkStatus();
}

absl::StatusOr<int> Settings::TrafficClass(int asked) const {
  const AskedClass value = asked == kNoTrafficClass ? options_.traffic_class : AskedClass{asked, false};
  if (value == AskedClass()) return kNoTrafficClass;
  return ResolveTrafficClass(value, traffic_classes_);
}

}  // namespace tcpx
