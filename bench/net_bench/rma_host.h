// rma_host.h: one loaded library with a table of one-sided transfers, and one context of it.
//
// Threads: one driver. Lifetime: outlives its links.
// Errors:  a Status with the function's name, the result's, and the library's last WARN.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/shared_page.h"
#include "nccl/client/rma_client.h"

namespace tcpx {
namespace bench {

class RmaHost {
 public:
  // Opens options.plugin, initialises, and checks that the device is there.
  static absl::StatusOr<std::unique_ptr<RmaHost>> Open(const Options& options, Position* position);
  // Finalizes and unloads.
  absl::Status Close();

  RmaClient* client() const { return client_.get(); }
  void* context() const { return context_; }
  int device() const { return device_; }
  // "tcpx, one-sided v16, device 0 of 1: lo, 10000 Mbit/s".
  const std::string& description() const { return description_; }

 private:
  RmaHost(std::unique_ptr<RmaClient> client, int device, Position* position)
      : client_(std::move(client)), device_(device), position_(position) {}
  absl::Status Init();

  std::unique_ptr<RmaClient> client_;
  const int device_;
  Position* const position_;
  void* context_ = nullptr;
  std::string description_;
};

}  // namespace bench
}  // namespace tcpx
