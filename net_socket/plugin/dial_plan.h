// dial_plan.h: what a connect asks its dial for: which of the peer's addresses, on which path, how many lanes.
//
// Threads: under the plugin's mutex.
// Lifetime: the request holds its lanes of the runtime's budget. Errors: none.
#pragma once

#include <cstdint>

#include "common/params.h"
#include "net_socket/connect/dial_lane.h"
#include "net_socket/plugin/transport.h"

namespace tcpx {

// Completes a request that has handle, device, communicator and traffic class. `host_mark`: the peer's; 0: not known.
void PlanDial(const Options& options, Transport* transport, uint64_t host_mark, DialRequest* request);

}  // namespace tcpx
