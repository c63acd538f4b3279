// limits.h: how long a group waits for whom, where it counts, and what it says once there may be none.
//
// Threads: constant. Units: ns.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "net_socket/rma/rma_counts.h"

namespace tcpx {

class GpuHub;

// Between two looks of a thread that waits. [us; a guess]
inline constexpr unsigned kRmaNapUs = 50;

struct RmaLimits {
  int64_t linger_ns = 0;         // a group's end, for what is queued; a region's, for gets of it
  int64_t hello_timeout_ns = 0;  // for the first record of a connection
  int64_t peer_timeout_ns = 0;   // for windows of this rank to close, once a peer has closed in order
  bool spread_errors = true;     // a connection that fails takes the communicator's others with it
  RmaCounts* counts = nullptr;   // of the process; null: nobody asks
  GpuHub* gpu = nullptr;         // null: host memory only
};

inline absl::Status LibraryEnds() { return absl::FailedPreconditionError("the library is being unloaded"); }

}  // namespace tcpx
