// Which NCCL and which plugin the loader finds.
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nccl/client/net_client.h"
#include "nccl/net_tables.h"
#include "tools/doctor/local_checks.h"
#include "tools/doctor/releases.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr char kName[] = "tcpx";

std::string Variable(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? "" : text;
}

// Where the loader found what `library` is.
std::string PathOf(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  return map->l_name;
}

// 0: not found. NCCL stays open: unloading it is nobody's habit.
int ReleaseOfNccl(const Patient& patient, Report* report) {
  const std::string& file = patient.command.nccl;
  void* const library = dlopen(file.empty() ? "libnccl.so.2" : file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    report->Add(file.empty() ? Grade::kNote : Grade::kProblem, "nccl",
                absl::StrCat("no NCCL that the loader finds (", reason, "); PyTorch and others bring their own"),
                "tcpx_doctor --nccl FILE, with the libnccl.so.2 of the application");
    return 0;
  }
  auto* get_version = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
  int release = 0;
  if (get_version == nullptr || get_version(&release) != 0) {
    report->Problem("nccl", absl::StrCat(PathOf(library), " does not say its version (ncclGetVersion)"),
                    "install NCCL 2.13 or later there, or name another with --nccl FILE");
    return 0;
  }
  const int major = release >= 10000 ? release / 10000 : release / 1000;
  const int minor = release >= 10000 ? release / 100 % 100 : release / 100 % 10;
  const int version = NetVersionOf(release);
  const std::string text = absl::StrFormat("NCCL %d.%d.%d, %s", major, minor, release % 100, PathOf(library));
  if (version == 0) {
    report->Problem("nccl",
                    absl::StrCat(text, ": too old, it takes none of v", kOldestNetVersion, " to v", kNewestNetVersion,
                                 " and would go on with its own sockets"),
                    "install NCCL 2.13.4 or later");
    return release;
  }
  report->Ok("nccl", absl::StrCat(text, ": it takes v", version, " of the plugin's interface"));
  return release;
}

// NCCL_NET decides which of the transports that were found is used.
void CheckChoice(Report* report) {
  const std::string net = Variable("NCCL_NET");
  if (net.empty()) {
    report->Note("plugin", "NCCL_NET is not set: where the plugin can't be loaded NCCL silently uses its own sockets",
                 "export NCCL_NET=tcpx");
  } else if (!absl::EqualsIgnoreCase(net, kName)) {
    report->Problem("plugin", absl::StrCat("NCCL_NET is '", net, "': NCCL uses that transport and not tcpx"),
                    "export NCCL_NET=tcpx");
  }
}

// In the order in which NCCL tries them.
std::vector<std::string> Candidates(const Patient& patient) {
  if (!patient.command.plugin.empty()) return {patient.command.plugin};
  const std::string asked = Variable("NCCL_NET_PLUGIN");
  if (asked.empty()) return {"libnccl-net.so"};
  return {asked, absl::StrCat("libnccl-net-", asked, ".so")};
}

// The file, or empty with the loader's reasons.
std::string FindPlugin(const Patient& patient, std::string* reasons) {
  std::vector<std::string> failures;
  for (const std::string& candidate : Candidates(patient)) {
    auto opened = NetClient::Open(candidate);
    if (opened.ok()) return candidate;
    failures.emplace_back(opened.status().message());
  }
  *reasons = absl::StrJoin(failures, "; ");
  return "";
}

// The plugin that was found and works is another one.
bool IsAnother(const std::string& file, Report* report) {
  const auto opened = NetClient::Open(file);
  if (!opened.ok() || absl::EqualsIgnoreCase((*opened)->name(), kName)) return false;
  report->Problem("plugin", absl::StrCat(file, " is another plugin, '", (*opened)->name(), "'"),
                  "export NCCL_NET_PLUGIN=tcpx");
  return true;
}

}  // namespace

FoundLibraries CheckLibraries(const Patient& patient, Report* report) {
  FoundLibraries found;
  const int release = ReleaseOfNccl(patient, report);
  found.version = NetVersionOf(release);
  CheckChoice(report);
  const std::string asked = Variable("NCCL_NET_PLUGIN");
  if (asked == "none") {
    report->Problem("plugin", "NCCL_NET_PLUGIN is 'none': NCCL loads no plugin", "export NCCL_NET_PLUGIN=tcpx");
  }
  std::string reasons;
  const std::string file = FindPlugin(patient, &reasons);
  if (file.empty()) {
    report->Problem("plugin", absl::StrCat("NCCL would not find the plugin: ", reasons),
                    "after pip install: eval \"$(python -m tcpx --shell)\"; else export "
                    "NCCL_NET_PLUGIN=/path/libnccl-net-tcpx.so (NCCL 2.21 and later), or NCCL_NET_PLUGIN=tcpx with the "
                    "library's folder in LD_LIBRARY_PATH");
    return found;
  }
  if (!IsAnother(file, report)) found.plugin = file;
  return found;
}

}  // namespace doctor
}  // namespace tcpx
