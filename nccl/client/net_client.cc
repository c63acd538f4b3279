#include "nccl/client/net_client.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "nccl/client/open_library.h"
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
  auto found = OpenTable(path, "ncclNetPlugin", version, {kOldestNetVersion, kNewestNetVersion});
  if (!found.ok()) return found.status();
  return WrapVersion(found->version, found->table, std::move(found->library));
}

}  // namespace tcpx
