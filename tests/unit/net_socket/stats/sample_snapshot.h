// sample_snapshot.h: a snapshot with something of everything, for tests of what shows it.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "net_socket/stats/snapshot.h"

namespace tcpx {

// Its values are all different.
inline ConnectionNumbers SampleConnection(const std::string& peer, bool sends, int lanes = 3) {
  ConnectionNumbers numbers;
  numbers.communicator = 0x1234;
  numbers.connection = "0123456789abcdef";
  numbers.sends = sends;
  numbers.interfaces = "eth0";
  numbers.peer_host = peer;
  numbers.messages = {10, 20};
  numbers.bytes = {1000, 20 << 20};
  numbers.sizes[0].buckets[7] = 10;
  numbers.sizes[0].sum = 1000;
  numbers.sizes[1].buckets[20] = 20;
  numbers.sizes[1].sum = 20 << 20;
  numbers.durations[0].buckets[14] = 9;
  numbers.durations[0].buckets[30] = 1;
  numbers.durations[0].sum = 123456;
  numbers.durations[1].buckets[22] = 20;
  numbers.counts.lost = 1;
  numbers.counts.moved = 2;
  numbers.counts.resumed = 3;
  numbers.counts.slow = 4;
  numbers.counts.dialled = 5;
  numbers.counts.added = 6;
  numbers.counts.dropped = 7;
  for (size_t i = 0; i < kBlockedKinds; ++i) numbers.blocked[i] = (i + 1) * 1000000000;
  numbers.posted = 5;
  for (int i = 0; i < lanes; ++i) {
    LaneNumbers lane;
    lane.local = absl::StrCat("10.0.0.1:", 1000 + i);
    lane.peer = absl::StrCat(peer, ":2000");
    lane.bytes = 7 << 20;
    lane.chunks = 11;
    lane.calls = 22;
    lane.short_calls = 2;
    lane.zero_copy = 6;
    lane.copied = 1;
    lane.read = true;
    lane.tcp.congestion = "bbr";
    lane.tcp.dscp = 46;
    lane.tcp.rtt_us = static_cast<uint32_t>(100 + i);
    lane.tcp.rtt_min_us = static_cast<uint32_t>(50 + i);
    lane.tcp.retransmits = 8;
    lane.tcp.busy_us = 3000000;
    lane.tcp.window_limited_us = 1000000;
    lane.tcp.delivery_bytes_per_second = 1000000000;
    numbers.lanes.push_back(lane);
  }
  return numbers;
}

inline Snapshot SampleSnapshot(const std::string& host = "node1") {
  Snapshot snapshot;
  snapshot.process = {host, 4711, "4711-4026532000", 1000, "unknown", 1700000000.25};
  snapshot.now_ns = 12345678901234;
  snapshot.collection_ns = 1500000;
  ThreadTimes thread;
  thread.id = 4712;
  thread.name = "tcpx-io-0";
  thread.cpu_ns = 2000000000;
  thread.no_cpu_ns = 500000000;
  snapshot.threads.push_back(thread);
  for (const bool sends : {false, true}) {
    snapshot.connections.push_back(SampleConnection("10.0.0.2", sends));
    snapshot.totals.Add(snapshot.connections.back(), true);
  }
  snapshot.rma.groups = 1;
  snapshot.rma.puts = 12;
  snapshot.rma.under_way_max = 32;
  return snapshot;
}

}  // namespace tcpx
