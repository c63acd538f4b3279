// issue.h: gives one collective to NCCL.
//
// Threads: the one of the communicator.
// Errors:  kInternal or kUnavailable with NCCL's text.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "absl/status/status.h"
#include "bench/nccl_bench/collective.h"
#include "bench/nccl_bench/reference.h"

namespace tcpx {
namespace nccl_bench {

// `send` and `receive` are memory of the device that holds what `layout` says.
absl::Status IssueCollective(const Problem& problem, const Layout& layout, char* send, char* receive, ncclComm_t comm,
                             cudaStream_t stream);

}  // namespace nccl_bench
}  // namespace tcpx
