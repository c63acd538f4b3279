// fake_runtime.h: streams of the stand-in for the CUDA runtime, for the stand-in for NCCL.
//
// Purpose: nccl_bench, linked with both, runs every line of its own without a GPU: device memory is host memory, a
// stream is a
//          thread with a queue, and ranks exchange files. What it can't show is whether NCCL and CUDA behave as it
//          expects.
// Threads: a stream's jobs run on its thread, in order; everything else on the caller's.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace tcpx {
namespace fake_nccl {

// Adds a job after those that the stream has already; while it captures, into the graph instead.
void Enqueue(cudaStream_t stream, std::function<void()> job);

}  // namespace fake_nccl
}  // namespace tcpx
