// one_sided.h: NCCL's one-sided transfers: puts with signals between all ranks, and collectives on windows.
//
// Purpose: checks each byte after its signal, and says how long an 8-byte put with its signal takes. With
//          NCCL_CTA_POLICY=2 the collectives may run without kernels, over the same transfers.
// Threads: one per process; all ranks of the job call it together.
// Errors:  kUnimplemented where this NCCL lacks a function; kFailedPrecondition where another plugin does the
//          transfers; kDataLoss for wrong bytes; else NCCL's and CUDA's.
// Source:  nccl.h of 2.30.7 for functions that older headers lack; they are looked up at run time.
#pragma once

#include "absl/status/status.h"
#include "bench/nccl_bench/device.h"
#include "bench/nccl_bench/job.h"
#include "bench/nccl_bench/rendezvous.h"

namespace tcpx {
namespace nccl_bench {

absl::Status CheckOneSided(const Job& job, Rendezvous* rendezvous, Communicator* comm, const Stream& stream);

}  // namespace nccl_bench
}  // namespace tcpx
