// plugin_channel.h: one direction of a connection of a plugin: isend or irecv, and test.
//
// Threads: one driver. Lifetime: borrows the host; the comm is the link's.
// Units:   bytes.
// Errors:  Step::kFailed with ResultText.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "bench/net_bench/channel.h"
#include "bench/net_bench/plugin_host.h"

namespace tcpx {
namespace bench {

class PluginChannel : public Channel {
 public:
  PluginChannel(PluginHost* host, void* comm, void* mhandle, bool sends)
      : client_(host->client()), parent_(host->profiler_parent()), comm_(comm), mhandle_(mhandle), sends_(sends) {}
  Step Post(uint8_t* data, size_t bytes) override;
  Step Test(size_t* bytes) override;
  std::string Failure() const override { return failure_; }

  void* comm() const { return comm_; }
  void* mhandle() const { return mhandle_; }
  // Receives posted from now on may be reported early (NCCL_NET_OPTIONAL_RECV_COMPLETION).
  void set_optional(bool optional) { optional_ = optional; }

 private:
  static constexpr size_t kPlaces = NCCL_NET_MAX_REQUESTS;

  Step Failed(const char* function, ncclResult_t result);

  NetClient* const client_;
  void* const parent_;  // for the profiler
  void* const comm_;
  void* const mhandle_;
  const bool sends_;
  bool optional_ = false;
  // Not cleared between uses: NCCL hands stale pointers to isend and irecv too.
  std::array<void*, kPlaces> requests_ = {};
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  std::string failure_;
};

}  // namespace bench
}  // namespace tcpx
