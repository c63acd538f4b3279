#include "net_socket/stats/totals.h"

#include <algorithm>
#include <iterator>

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

void AddLane(const LaneNumbers& lane, bool open_now, DirectionTotals* sum) {
  AddCounts(kLaneCounters, lane, &sum->stream);
  AddCounts(kTcpCounters, lane.tcp, &sum->tcp);
  if (!open_now || !lane.open) return;
  if (lane.read) ++sum->lanes[{lane.tcp.congestion, lane.tcp.dscp}];  // Else its class is not known yet.
  sum->rtt_us = std::max(sum->rtt_us, lane.tcp.rtt_us);
  const uint32_t least = lane.tcp.rtt_min_us;
  if (least != 0 && (sum->rtt_min_us == 0 || least < sum->rtt_min_us)) sum->rtt_min_us = least;
  sum->delivery_bytes_per_second += lane.tcp.delivery_bytes_per_second;
  sum->unacked_bytes += lane.tcp.unacked_bytes;
}

}  // namespace

void DirectionTotals::Add(const ConnectionNumbers& numbers, bool open_now) {
  ++opened;
  failed += numbers.failed ? 1 : 0;
  for (size_t i = 0; i < 2; ++i) {
    messages[i] += numbers.messages[i];
    bytes[i] += numbers.bytes[i];
    sizes[i].Add(numbers.sizes[i]);
    durations[i].Add(numbers.durations[i]);
  }
  AddCounts(kConnectionCounters, numbers.counts, &counts);
  for (size_t i = 0; i < kBlockedKinds; ++i) blocked[i] += numbers.blocked[i];
  for (const LaneNumbers& lane : numbers.lanes) AddLane(lane, open_now, this);
  if (!open_now) return;
  ++open;
  posted += static_cast<uint64_t>(numbers.posted);
}

void Totals::Add(const ConnectionNumbers& numbers, bool open_now) {
  if (open_now && numbers.communicator != 0) {
    communicators_[numbers.communicator].insert(numbers.gpu);
    if (communicators_.size() > kCommunicatorsMax) communicators_.erase(std::prev(communicators_.end()));
  }
  map_[{numbers.interfaces, numbers.peer_host}][numbers.sends ? 1 : 0].Add(numbers, open_now);
}

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
