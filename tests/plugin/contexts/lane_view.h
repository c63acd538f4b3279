// lane_view.h: the TCP sockets of this process, and how their packets are marked.
//
// Purpose: the plugin's lanes are descriptors of the process that tests it, so their options can be asked for.
// Threads: any; a socket that another thread closes meanwhile is left out.
// Units:   traffic classes are octets.
// Errors:  what can't be asked for is left out.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tcpx {

struct LaneEnd {
  int fd = -1;
  std::string local;
  std::string peer;
  int traffic_class = -1;
  int priority = -1;
};

// Connected sockets, by descriptor.
std::vector<LaneEnd> ConnectedSockets();
// Those of `all` that are not in `before` (by the addresses of their ends).
std::vector<LaneEnd> NewOnes(const std::vector<LaneEnd>& all, const std::vector<LaneEnd>& before);

// From TCP_SAVE_SYN on a listening socket: the traffic class of the SYN that began this connection; -1 when unknown.
int TrafficClassOfSyn(int fd);

}  // namespace tcpx
