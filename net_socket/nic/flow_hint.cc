#include "net_socket/nic/flow_hint.h"

namespace tcpx {
namespace {

// NCCL announces min(ranks, 4) peers for collectives, of which a ring uses one, and a flow per channel: two channels
// keep all their lanes, eight have a quarter each. A guess: lower starves rings, higher wastes sockets.
constexpr int64_t kConnectionsWithAllLanes = 8;
// Of flows that a cloud limits to a part of the link, as many as NCCL's own sockets have there.
constexpr int64_t kBulkMin = 4;
// The kernel lets a send buffer grow to 4 MiB (tcp_wmem): with many that is memory for little gain. A guess, too; the
// least is twice what 10 Gbit/s send in 100 us.
constexpr int64_t kConnectionsUnbound = 64;
constexpr int64_t kSharedUnsentBytes = 64 << 20;
constexpr int64_t kUnsentBytesMin = 256 << 10;

}  // namespace

int ShareLanes(int lanes, int bulk_min, const FlowHint& hint) {
  const int64_t bulk = lanes - 1;
  const int64_t connections = std::max(hint.connections(), kConnectionsWithAllLanes);
  const int64_t shared = (bulk * kConnectionsWithAllLanes + connections - 1) / connections;
  return 1 + static_cast<int>(std::min(bulk, std::max({shared, kBulkMin, int64_t{bulk_min}})));
}

int ShareUnsent(const FlowHint& hint) {
  if (hint.connections() <= kConnectionsUnbound) return -1;
  return static_cast<int>(std::max(kSharedUnsentBytes / hint.connections(), kUnsentBytesMin));
}

}  // namespace tcpx
