// gpu_patience.h: how long deregMr and closing wait for copies of a GPU.
//
// Purpose: a kernel may keep a GPU from copying for ever, and NCCL may close just because of that. The first wait in
//          vain takes the whole patience. While what it waited for is still under way, waits for the same stream only
//          look, and waits for others are short: a close that waits for several streams takes about one patience.
// Threads: any. Lifetime: the hub's, which outlives the streams.
// Units:   ns.
// Source:  TCPX_PEER_TIMEOUT.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace tcpx {

class GpuPatience {
 public:
  explicit GpuPatience(int64_t ns) : ns_(ns) {}

  // Asks `over` until it says true. False: it has not within the patience. *stuck is the stream's: a wait for it was in
  // vain, and it was not over since.
  bool Await(std::atomic<bool>* stuck, absl::FunctionRef<bool()> over);
  double seconds() const { return static_cast<double>(ns_) * 1e-9; }

 private:
  const int64_t ns_;
  std::atomic<int> stuck_streams_{0};
};

}  // namespace tcpx
