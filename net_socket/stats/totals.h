// totals.h: the numbers of many connections, summed up by device and peer host.
//
// Threads: plain data. Units: as in numbers.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "net_socket/stats/numbers.h"

namespace tcpx {

// Totals of one direction between a device here and a host there.
struct DirectionTotals : TrafficNumbers {
  uint64_t opened = 0;
  uint64_t failed = 0;
  LaneSums stream;  // of all lanes
  TcpCounts tcp;
  // The rest is about connections that are open now.
  uint64_t open = 0;
  uint64_t posted = 0;
  std::map<std::pair<std::string, int>, uint64_t> lanes;  // by congestion control and DSCP
  uint32_t rtt_us = 0;                                    // the longest
  uint32_t rtt_min_us = 0;                                // the shortest ever
  uint64_t delivery_bytes_per_second = 0;
  uint64_t unacked_bytes = 0;

  void Add(const ConnectionNumbers& numbers, bool open_now);
};

struct TotalsKey {
  std::string interfaces;
  std::string peer_host;
  bool operator<(const TotalsKey& other) const {
    return std::tie(interfaces, peer_host) < std::tie(other.interfaces, other.peer_host);
  }
};

class Totals {
 public:
  using Map = std::map<TotalsKey, std::array<DirectionTotals, 2>>;  // [sends]

  // The host by which hosts go that find no place of their own.
  static constexpr char kOther[] = "other";
  static constexpr size_t kPeersMax = 256;

  // Communicators of open connections, NCCL's 2.28 and later, and their GPUs: at most this many, of the lowest ids.
  static constexpr size_t kCommunicatorsMax = 64;

  void Add(const ConnectionNumbers& numbers, bool open_now);
  const Map& map() const { return map_; }
  const std::map<uint64_t, std::set<int>>& communicators() const { return communicators_; }

 private:
  Map map_;
  std::map<uint64_t, std::set<int>> communicators_;
};

// What a communicator's connections did, as a table for the log.
// Threads: any; pure. Units: of the columns, in their heads. Errors: none.

// Rows of one table at the most; what is beyond is one more, that says how many.
inline constexpr size_t kTableRowsMax = 64;

// A head, and a row for each device, peer host and direction. Empty where there was no connection.
std::vector<std::string> StatsTable(const Totals& totals);

}  // namespace tcpx
