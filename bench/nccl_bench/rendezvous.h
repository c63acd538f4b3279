// rendezvous.h: how the ranks meet before NCCL connects them, and how they agree without it.
//
// Purpose: passes the unique id from rank 0 to all, sums small arrays of numbers over all ranks, and is a barrier. The
//          ranks connect by TCP to rank 0, which listens at MASTER_ADDR:MASTER_PORT.
// Threads: one.
// Units:   seconds. Numbers travel as they lie in memory: all ranks are the same build (the hello says so).
// Errors:  kDeadlineExceeded with what was waited for; kUnavailable when a rank is gone; kInvalidArgument when two jobs
//          meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/nccl_bench/job.h"
#include "common/fd.h"

namespace tcpx {
namespace nccl_bench {

// A socket that listens on `port` (0: the kernel chooses) of any address, and the port it got.
struct Listener {
  OwnedFd fd;
  int port = 0;
};
absl::StatusOr<Listener> ListenForRanks(int port);

class Rendezvous {
 public:
  // Returns once all ranks are there. Each wait, here and later, ends after `timeout_s`. Rank 0 listens on `listener`
  // if that is valid, else on job.master_port. Strangers that dial rank 0 cost a second each at
  // most.
  static absl::StatusOr<std::unique_ptr<Rendezvous>> Meet(const Job& job, int timeout_s, OwnedFd listener = OwnedFd());

  // At all ranks, `bytes` of `data` become those of rank 0.
  absl::Status Broadcast(void* data, size_t bytes);
  // At all ranks, `values` become the sums over the ranks. All pass equally many.
  absl::Status Sum(std::vector<double>* values);
  absl::Status Barrier();

 private:
  Rendezvous(const Job& job, int timeout_s) : job_(job), timeout_s_(timeout_s) {}

  absl::Status Gather(OwnedFd listener);
  absl::Status Greet(OwnedFd fd);
  absl::Status Dial();
  absl::Status Introduce(int fd, int64_t deadline_ns) const;

  const Job job_;
  const int timeout_s_;
  // At rank 0: by rank, own place empty. Elsewhere: only [0], the connection to rank 0.
  std::vector<OwnedFd> peers_;
  int arrived_ = 0;
};

}  // namespace nccl_bench
}  // namespace tcpx
