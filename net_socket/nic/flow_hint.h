// flow_hint.h: what NCCL announces with setNetAttr, and what becomes of it where no parameter decides.
//
// Threads: pure.
// Units:   bytes.
// Errors:  none.
// Source:  NCCL 2.28 to 2.30.
#ifndef TCPX_NET_SOCKET_NIC_FLOW_HINT_H_
#define TCPX_NET_SOCKET_NIC_FLOW_HINT_H_

#include <algorithm>
#include <cstdint>

namespace tcpx {

// How many connections NCCL wants to use at once on the sending side; -1: it has not said.
struct FlowHint {
  int peers = -1;
  int flows_per_peer = -1;

  int64_t connections() const { return int64_t{std::max(peers, 1)} * std::max(flows_per_peer, 1); }
};

// Of a connection that alone would have `lanes`, lane 0 included: with more than 8 connections at once they share 8
// times as many bulk lanes, and each has `bulk_min` or 4 at the least (never more than it would have alone): what is
// announced is not what is busy, and a pipeline's stage has one peer whatever is announced.
int ShareLanes(int lanes, int bulk_min, const FlowHint& hint);

// What may wait unsent in each bulk lane (TCP_NOTSENT_LOWAT): -1, no bound, but for more than 64 connections at once a
// part of 64 MiB, 256 KiB at the least. What is in flight stays the kernel's business: a locked SO_SNDBUF would bound
// it too, and with it the speed of the one connection that is busy.
int ShareUnsent(const FlowHint& hint);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_NIC_FLOW_HINT_H_
