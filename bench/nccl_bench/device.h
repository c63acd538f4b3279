// device.h: the GPU and NCCL as this program uses them: owned, and with errors that say what was tried.
//
// Threads: one per process; a Communicator is used by one thread.
// Units:   bytes.
// Errors:  kInternal with the library's own text; kUnavailable for what NCCL reports of a peer or the network.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/nccl_bench/job.h"
#include "bench/nccl_bench/rendezvous.h"

namespace tcpx {
namespace nccl_bench {

absl::Status CudaStatus(cudaError_t error, const char* what);
// `comm` may be null.
absl::Status NcclStatus(ncclResult_t result, const char* what, ncclComm_t comm);

// Number of CUDA devices; an error names the reason where there is none.
absl::StatusOr<int> DeviceCount();
// "NCCL 2.28.9, CUDA runtime 13.0, driver 13.0, NVIDIA H100 80GB HBM3".
std::string DescribeDevice(int device);

// Memory of the device.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  absl::Status Allocate(size_t bytes);
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
};

// A stream that waits for no other.
class Stream {
 public:
  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  absl::Status Create();
  cudaStream_t get() const { return stream_; }
  // True exactly when everything given to it is done; an error of the device counts as done.
  bool Idle() const { return cudaStreamQuery(stream_) != cudaErrorNotReady; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Communicator {
 public:
  explicit Communicator(ncclComm_t comm) : comm_(comm) {}
  // Aborts what was not closed: destroying waits for peers that may be gone.
  ~Communicator() { Abort(); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // All ranks of the job call it together. `traffic_class` < 0: none.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(const Job& job, Rendezvous* rendezvous,
                                                              int traffic_class = -1);
  // As ncclCommSplit; null for a rank without a color (negative).
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, bool share);

  ncclComm_t get() const { return comm_; }
  int rank() const;
  int ranks() const;

  // Until the stream is idle, or NCCL reports an error of this communicator.
  absl::Status Wait(const Stream& stream);
  absl::Status Close();
  void Abort();

 private:
  absl::Status AsyncError();

  ncclComm_t comm_;
};

}  // namespace nccl_bench
}  // namespace tcpx
