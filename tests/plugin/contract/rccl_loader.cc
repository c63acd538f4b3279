// rccl_loader: looks for a net plugin by the rules of one release of RCCL, starts it as that release would, and prints
// what it got.
//
// usage: rccl_loader RELEASE    with NCCL_NET_PLUGIN and LD_LIBRARY_PATH as in a job
//
//   file librccl-net-tcpx.so    the name that was opened
//   table v8                    the first one found
//   net tcpx                    the name that RCCL's log shows and that NCCL_NET selects
//   collnet none                or its version
//   device 0 pointers 1         ptrSupport of each device: 1 is host memory only
//   INFO ...                    the plugin's own log
//
// "no plugin": RCCL would go on with its own transports. A process of its own for each look-up: the loader reads
// LD_LIBRARY_PATH once, and RCCL loads a plugin once.
//
// Source: src/net.cc of ROCm/rccl at rocm-5.3.0 to rocm-6.2.2 and release-staging/rocm-rel-6.3; src/plugin/net.cc and
//         src/plugin/plugin_open.cc there and in ROCm/rocm-systems, NCCL levels 2.26 to 2.30. The rules are retold, not
//         copied; docs/compatibility.md lists them.
//
// exit code: 0 looked; 1 the plugin failed; 2 wrong usage
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nccl/client/net_client.h"
#include "tests/support/plugin_log.h"

namespace tcpx {
namespace {

struct Rules {
  const char* release;
  int newest;  // of the tables looked up, downwards
  int oldest;
  bool takes_files;   // NCCL_NET_PLUGIN may be a file as well as a NAME
  bool takes_lists;   // and several of them, or "none"
  const char* unset;  // the file opened when NCCL_NET_PLUGIN is not set
};

constexpr Rules kRules[] = {
    {"2.12.12", 5, 4, false, false, "librccl-net.so"}, {"2.13.4", 6, 4, false, false, "librccl-net.so"},
    {"2.15.5", 6, 4, false, false, "librccl-net.so"},  {"2.16.5", 6, 4, false, false, "librccl-net.so"},
    {"2.17.1", 6, 4, false, false, "librccl-net.so"},  {"2.18.3", 6, 4, false, false, "librccl-net.so"},
    {"2.18.6", 6, 4, false, false, "librccl-net.so"},  {"2.20.5", 8, 5, false, false, "librccl-net.so"},
    {"2.21.5", 8, 5, true, false, "librccl-net.so"},   {"2.26.6", 10, 6, true, false, "librccl-net.so"},
    {"2.27.7", 10, 6, true, true, "libnccl-net.so"},   {"2.28.3", 11, 6, true, true, "librccl-net.so"},
    {"2.30.4", 12, 6, true, true, "librccl-net.so"},
};

// Those releases that take lists try no NAME where the value is plainly a file.
bool IsPlainlyAFile(const std::string& value) {
  return absl::StrContains(value, "/") || (absl::StartsWith(value, "lib") && absl::EndsWith(value, ".so"));
}

std::vector<std::string> FilesFor(const Rules& rules, const std::string& value) {
  const std::string named = absl::StrCat("librccl-net-", value, ".so");
  if (!rules.takes_files) return {named};
  if (rules.takes_lists && IsPlainlyAFile(value)) return {value};
  return {value, named};
}

// The files of each plugin that is asked for, in the order of the look-up.
std::vector<std::vector<std::string>> Wanted(const Rules& rules) {
  const char* const set = std::getenv("NCCL_NET_PLUGIN");
  const std::string value = set == nullptr ? "" : set;
  if (rules.takes_lists && set != nullptr) {
    std::vector<std::vector<std::string>> wanted;
    if (absl::EqualsIgnoreCase(value, "none")) return wanted;
    for (const std::string& one : std::vector<std::string>(absl::StrSplit(value, ',', absl::SkipEmpty()))) {
      wanted.push_back(FilesFor(rules, one));
    }
    return wanted;
  }
  if (value.empty()) return {{rules.unset}};
  return {FilesFor(rules, value)};
}

// The newest table that `symbol` names with its version, or 0.
int FindTable(const Rules& rules, void* library, const char* symbol) {
  for (int version = rules.newest; version >= rules.oldest; --version) {
    if (dlsym(library, absl::StrCat(symbol, version).c_str()) != nullptr) return version;
  }
  return 0;
}

int Failed(const char* call, ncclResult_t result) {
  std::printf("%s: %d\n%s", call, static_cast<int>(result), LogText().c_str());
  return 1;
}

// What RCCL asks before it decides where its buffers lie.
int Start(const std::string& file, int version) {
  auto net = NetClient::Open(file, version);
  if (!net.ok()) return Failed(std::string(net.status().message()).c_str(), ncclSystemError);
  void* context = nullptr;
  ncclResult_t result = (*net)->Init(&context, 42, NCCL_NET_TRAFFIC_CLASS_UNDEF, &RecordLog, nullptr);
  if (result != ncclSuccess) return Failed("init", result);
  std::printf("net %s\n", (*net)->name());
  int devices = 0;
  result = (*net)->Devices(&devices);
  if (result != ncclSuccess || devices <= 0) return Failed("devices", result);
  for (int dev = 0; dev < devices; ++dev) {
    ncclNetProperties_v12_t props = {};
    result = (*net)->GetProperties(dev, &props);
    if (result != ncclSuccess) return Failed("getProperties", result);
    std::printf("device %d pointers %d\n", dev, props.ptrSupport);
  }
  result = (*net)->Finalize(context);
  if (result != ncclSuccess) return Failed("finalize", result);
  std::fputs(LogText().c_str(), stdout);
  return 0;
}

// RCCL leaves the library open until the last communicator is gone; here that is the end of the process.
int Load(const Rules& rules) {
  for (const auto& files : Wanted(rules)) {
    for (const std::string& file : files) {
      void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) continue;
      std::printf("file %s\n", file.c_str());
      const int version = FindTable(rules, library, "ncclNetPlugin_v");
      if (version == 0) break;
      const int collnet = FindTable(rules, library, "ncclCollNetPlugin_v");
      std::printf("table v%d\ncollnet %s\n", version, collnet == 0 ? "none" : std::to_string(collnet).c_str());
      return Start(file, version);
    }
  }
  std::puts("no plugin");
  return 0;
}

int Main(int argc, char** argv) {
  for (const Rules& rules : kRules) {
    if (argc == 2 && argv[1] == std::string(rules.release)) return Load(rules);
  }
  std::puts("usage: rccl_loader RELEASE, one that docs/compatibility.md lists");
  return 2;
}

}  // namespace
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::Main(argc, argv); }
