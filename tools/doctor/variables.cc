// The variables of the plugin, and what some of them name.
#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/params.h"
#include "common/traffic_class.h"
#include "net_socket/connect/secret.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/seal/key_memory.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

// A setting of NCCL's own sockets that the plugin does not use.
bool IsNcclsOwn(absl::string_view name) { return name == "NCCL_SOCKET_POLL_TIMEOUT_MSEC"; }

bool IsParameter(absl::string_view name) {
  for (const Parameter& parameter : Parameters()) {
    if (name == parameter.name) return true;
  }
  return false;
}

// "NAME" of "NAME=VALUE".
absl::string_view NameOf(absl::string_view entry) { return entry.substr(0, entry.find('=')); }

std::string FixName(absl::string_view name, const std::string& nearest) {
  if (nearest.empty()) return absl::StrCat("unset ", name);
  return absl::StrCat("export ", nearest, "=\"$", name, "\"; unset ", name);
}

void CheckUnknownOfNccl(absl::string_view name, Report* report) {
  if (!absl::StartsWith(name, "NCCL_SOCKET_") || IsParameter(name)) return;
  if (IsNcclsOwn(name)) {
    report->Note("variable", absl::StrCat(name, " is for NCCL's own sockets and has no effect here"));
    return;
  }
  const std::string nearest = NearestParameter(name, "NCCL_");
  const std::string hint = nearest.empty() ? "" : absl::StrCat("; the nearest name is ", nearest);
  report->Problem("variable", absl::StrCat(name, " is not known and has no effect", hint), FixName(name, nearest));
}

// The plugin's own warning, one for each name.
void CheckUnknownOfOurs(const char* entry, Report* report) {
  const char* const one[] = {entry, nullptr};
  const absl::string_view name = NameOf(entry);
  for (const std::string& warning : UnknownParameters(one)) {
    const bool no_other = absl::StartsWith(name, "TCPX_TEST_") || IsRemovedParameter(name);
    report->Problem("variable", warning, FixName(name, no_other ? "" : NearestParameter(name, "TCPX_")));
  }
}

std::string SetOfNccl() {
  std::vector<std::string> set;
  for (const Parameter& parameter : Parameters()) {
    const char* value = getenv(parameter.name);
    if (value != nullptr && *value != '\0' && absl::StartsWith(parameter.name, "NCCL_")) {
      set.push_back(absl::StrCat(parameter.name, "=", value));
    }
  }
  return absl::StrJoin(set, " ");
}

}  // namespace

void CheckVariables(const Patient& patient, Report* report) {
  const std::string ours = absl::StrJoin(patient.set_options, " ");
  const std::string nccls = SetOfNccl();
  report->Ok("variable", ours.empty() ? "no TCPX_ variable is in effect" : "in effect: " + ours);
  if (!nccls.empty()) report->Ok("variable", "in effect, of NCCL's: " + nccls);
  for (const std::string& warning : patient.option_warnings) {
    const std::string name(NameOf(warning).substr(0, warning.find(' ')));
    report->Problem("variable", warning, absl::StrCat("correct ", name, " (docs/parameters.md), or unset it"));
  }
  if (!patient.options.refused.empty()) {
    const std::string name = patient.options.refused.substr(0, patient.options.refused.find(' '));
    report->Problem("variable", absl::StrCat(patient.options.refused, "; the plugin refuses every connection"),
                    absl::StrCat("correct ", name, " (docs/parameters.md), or unset it"));
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    CheckUnknownOfOurs(*entry, report);
    CheckUnknownOfNccl(NameOf(*entry), report);
  }
}

void CheckSecret(const Patient& patient, Report* report) {
  const std::string& file = patient.options.secret_file;
  if (!patient.options.encrypt) {
    report->Note(
        "secret",
        "connections are not encrypted, and NCCL's own encryption (ncclSetEncryption, NCCL 2.32) covers its own "
        "sockets only: a plugin is not shown it",
        "where others can reach the network: TCPX_ENCRYPT=1 and TCPX_SECRET_FILE on all ranks (docs/security.md)");
  }
  const bool required = patient.options.require_encryption && !patient.options.encrypt;
  if (required || (patient.options.encrypt && file.empty())) {
    report->Problem("secret",
                    absl::StrCat(required ? "TCPX_REQUIRE_ENCRYPTION is on, and TCPX_ENCRYPT is not"
                                          : "TCPX_ENCRYPT is on, and TCPX_SECRET_FILE names no secret",
                                 "; the plugin refuses every connection"),
                    "set TCPX_ENCRYPT=1 and TCPX_SECRET_FILE on all ranks (docs/security.md)");
  }
  if (file.empty()) {
    report->Ok("secret", "no shared secret (TCPX_SECRET_FILE is not set): anyone who learns a handle may connect");
    return;
  }
  const auto secret = Secret::Load(file);
  if (!secret.ok()) {
    report->Problem("secret", absl::StrCat(secret.status().message(), "; the plugin refuses every connection"),
                    absl::StrCat("(umask 077; openssl rand -base64 32 >", file, "; chmod 600 ", file,
                                 "), and copy it to every host"));
    return;
  }
  if (!KeysAreLocked()) {
    report->Note("secret", "the secret and keys can't be locked in memory, and may go to swap",
                 "raise `ulimit -l` (RLIMIT_MEMLOCK)");
  }
  report->Ok("secret", absl::StrCat(file, ": every peer has to prove the secret that it holds"));
}

void CheckTrafficClass(const Patient& patient, Report* report) {
  if (patient.options.traffic_class == AskedClass()) return;
  const auto map = ParseTrafficClassMap(patient.options.traffic_class_map);
  const auto octet = ResolveTrafficClass(patient.options.traffic_class, map.value_or(TrafficClassMap()));
  if (octet.ok()) {
    report->Ok("class", absl::StrCat("traffic class ", *octet, TrafficClassSuffix(*octet)));
  } else {
    report->Problem("class", absl::StrCat("TCPX_TRAFFIC_CLASS: ", octet.status().message()),
                    "correct TCPX_TRAFFIC_CLASS (docs/parameters.md)");
  }
}

void CheckOneSided(const Patient& patient, Report* report) {
  if (!patient.options.rma) return;
  constexpr char kCheck[] = "one-sided";
  // NCCL has no windows between nodes with any of these, and so asks for no one-sided transfer.
  for (const char* name : {"NCCL_CROSS_NIC", "NCCL_CUMEM_ENABLE", "NCCL_WIN_ENABLE"}) {
    const char* const value = getenv(name);
    if (value == nullptr || absl::string_view(value) != "0") continue;
    report->Problem(kCheck,
                    absl::StrCat("TCPX_RMA=1 has no effect: with ", name, "=0 NCCL has no windows between nodes"),
                    absl::StrCat("unset ", name, ", or TCPX_RMA, on all ranks"));
  }
  const auto driver = GpuDriver::Load();
  if (driver.ok() && !(*driver)->writes_words()) {
    report->Note(kCheck, "TCPX_RMA=1 has no effect: the CUDA driver can't write signals",
                 "update it to CUDA 11.7 or later");
    return;
  }
  if (driver.ok()) {
    report->Note(kCheck, "TCPX_RMA=1: one-sided transfers to and from the memory of a GPU have not run on one yet",
                 "run tools/gpu --only rma first (docs/rma.md)");
  }
  report->Ok(kCheck, "TCPX_RMA=1: NCCL 2.30.7 and later finds one-sided transfers; set it on all ranks");
}

}  // namespace doctor
}  // namespace tcpx
