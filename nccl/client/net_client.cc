#include "nccl/client/net_client.h"

#include <dlfcn.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nccl/client/table_client.h"
#include "nccl/versions.h"

namespace tcpx {
namespace {

template <class Table>
std::unique_ptr<NetClient> Wrap(const void* table, LibraryHandle library) {
  return std::make_unique<TableClient<Table>>(static_cast<const Table*>(table), std::move(library));
}

std::unique_ptr<NetClient> WrapVersion(int version, const void* table, LibraryHandle library) {
  switch (version) {
    case 6:
      return Wrap<ncclNet_v6_t>(table, std::move(library));
    case 7:
      return Wrap<ncclNet_v7_t>(table, std::move(library));
    case 8:
      return Wrap<ncclNet_v8_t>(table, std::move(library));
    case 9:
      return Wrap<ncclNet_v9_t>(table, std::move(library));
    case 10:
      return Wrap<ncclNet_v10_t>(table, std::move(library));
    case 11:
      return Wrap<ncclNet_v11_t>(table, std::move(library));
    default:
      return Wrap<ncclNet_v12_t>(table, std::move(library));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetClient>> NetClient::Open(const std::string& path, int version) {
  if (version != 0 && (version < kOldestNetVersion || version > kNewestNetVersion)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": v", version, " is not one of v", kOldestNetVersion, " to v", kNewestNetVersion));
  }
  LibraryHandle library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) {
    // The loader's text begins with the file, mostly.
    const std::string reason = dlerror();
    return absl::NotFoundError(absl::StartsWith(reason, path) ? reason : absl::StrCat(path, ": ", reason));
  }
  const int newest = version != 0 ? version : kNewestNetVersion;
  const int oldest = version != 0 ? version : kOldestNetVersion;
  for (int v = newest; v >= oldest; --v) {
    const void* table = dlsym(library.get(), absl::StrCat("ncclNetPlugin_v", v).c_str());
    if (table != nullptr) return WrapVersion(v, table, std::move(library));
  }
  return absl::NotFoundError(absl::StrCat(path, ": no symbol ncclNetPlugin_v", newest,
                                          newest != oldest ? absl::StrCat(" to _v", oldest) : std::string()));
}

}  // namespace tcpx
