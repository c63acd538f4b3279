#include "nccl/client/net_client.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "nccl/client/open_library.h"
#include "nccl/client/table_client.h"
#include "nccl/net_tables.h"

namespace tcpx {
namespace {

template <class Table>
std::unique_ptr<NetClient> Wrap(FoundTable found) {
  return std::make_unique<TableClient<Table>>(static_cast<const Table*>(found.table), std::move(found.library));
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetClient>> NetClient::Open(const std::string& path, int version) {
  auto found = OpenTable(path, "ncclNetPlugin", version, kOldestNetVersion, kNewestNetVersion);
  if (!found.ok()) return found.status();
  constexpr std::unique_ptr<NetClient> (*kWrap[])(FoundTable) = {
      Wrap<ncclNet_v6_t>,  Wrap<ncclNet_v7_t>,  Wrap<ncclNet_v8_t>, Wrap<ncclNet_v9_t>,
      Wrap<ncclNet_v10_t>, Wrap<ncclNet_v11_t>, Wrap<ncclNet_v12_t>};
  return kWrap[found->version - kOldestNetVersion](*std::move(found));
}

}  // namespace tcpx
