#include "net_socket/stats/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tcpx {
namespace {

constexpr char kHead[] =
    "stats: device        peer                    dir   conns   messages  bulk%        MiB  p50 us  p99 us  retrans  "
    "rtt us  "
    "network%   peer%   nccl%   here%";

double Share(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

std::string Row(const TotalsKey& key, bool sends, const DirectionTotals& sum) {
  LogHistogramValues durations = sum.durations[0];
  durations.Add(sum.durations[1]);
  const uint64_t bytes = sum.bytes[0] + sum.bytes[1];
  uint64_t all = 0;
  for (uint64_t ns : sum.blocked) all += ns;
  auto blocked = [&](std::initializer_list<Blocked> kinds) {
    uint64_t ns = 0;
    for (Blocked kind : kinds) ns += sum.blocked[static_cast<size_t>(kind)];
    return Share(ns, all);
  };
  return absl::StrFormat(
      "stats: %-13s %-23s %-5s %5d %10d %6.1f %10.1f %7.0f %7.0f %8d %7d %9.1f %7.1f %7.1f %7.1f", key.interfaces,
      key.peer_host, sends ? "send" : "recv", sum.opened, sum.messages[0] + sum.messages[1], Share(sum.bytes[1], bytes),
      static_cast<double>(bytes) / (1 << 20), static_cast<double>(durations.Quantile(0.5)) * 1e-3,
      static_cast<double>(durations.Quantile(0.99)) * 1e-3, sum.tcp.retransmits, sum.rtt_us,
      blocked({Blocked::kNetworkPath}), blocked({Blocked::kPeerWindow, Blocked::kPeerNotPosted, Blocked::kPeerSilent}),
      blocked({Blocked::kNcclIdle, Blocked::kNcclUntested}), blocked({Blocked::kHereCopying, Blocked::kHereNoCpu}));
}

}  // namespace

std::vector<std::string> StatsTable(const Totals& totals) {
  std::vector<std::string> lines;
  size_t rows = 0;
  for (const auto& [key, directions] : totals.map()) {
    for (size_t sends = 0; sends < 2; ++sends) {
      if (directions[sends].opened == 0) continue;
      if (rows++ == 0) lines.push_back(kHead);
      if (rows <= kTableRowsMax) lines.push_back(Row(key, sends != 0, directions[sends]));
    }
  }
  if (rows > kTableRowsMax) lines.push_back(absl::StrCat("stats: and ", rows - kTableRowsMax, " rows more"));
  return lines;
}

}  // namespace tcpx
