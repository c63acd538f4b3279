#include "net_socket/stats/totals.h"

#include <algorithm>
#include <iterator>

namespace tcpx {
namespace {

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

}  // namespace tcpx
