#include "bench/nccl_bench/device.h"

#include <sched.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// NCCL's state is read under a lock, so not in every round.
constexpr uint64_t kRoundsPerLook = 256;

std::string CudaVersion(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

std::string NcclVersion() {
  int version = 0;
  ncclGetVersion(&version);
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

}  // namespace

absl::Status CudaStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", cudaGetErrorString(error), " (", error, ")"));
}

absl::Status NcclStatus(ncclResult_t result, const char* what, ncclComm_t comm) {
  if (result == ncclSuccess) return absl::OkStatus();
  const std::string text =
      absl::StrCat(what, ": ", ncclGetErrorString(result), " (", result, "): ", ncclGetLastError(comm));
  const bool network = result == ncclRemoteError || result == ncclSystemError;
  return network ? absl::UnavailableError(text) : absl::InternalError(text);
}

absl::StatusOr<int> DeviceCount() {
  int count = 0;
  if (absl::Status status = CudaStatus(cudaGetDeviceCount(&count), "no CUDA device"); !status.ok()) return status;
  if (count == 0) return absl::InternalError("no CUDA device: the driver lists none");
  return count;
}

std::string DescribeDevice(int device) {
  int runtime = 0;
  int driver = 0;
  cudaDeviceProp properties = {};
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  cudaGetDeviceProperties(&properties, device);
  return absl::StrCat("NCCL ", NcclVersion(), ", CUDA runtime ", CudaVersion(runtime), ", driver ", CudaVersion(driver),
                      ", ", properties.name);
}

absl::Status DeviceBuffer::Allocate(size_t bytes) {
  void* data = nullptr;
  absl::Status status = CudaStatus(cudaMalloc(&data, bytes), "cudaMalloc");
  data_ = static_cast<char*>(data);
  return status;
}

Stream::~Stream() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

absl::Status Stream::Create() {
  return CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(const Job& job, Rendezvous* rendezvous,
                                                                   int traffic_class) {
  ncclUniqueId id = {};
  if (job.rank == 0) {
    absl::Status status = NcclStatus(ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr);
    if (!status.ok()) return status;
  }
  if (absl::Status status = rendezvous->Broadcast(&id, sizeof(id)); !status.ok()) return status;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 26, 2)
  if (traffic_class >= 0) config.trafficClass = traffic_class;
#else
  if (traffic_class >= 0) return absl::UnimplementedError("traffic classes need NCCL 2.26.2 or newer");
#endif
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, job.size, id, job.rank, &config);
  if (absl::Status status = NcclStatus(result, "ncclCommInitRankConfig", nullptr); !status.ok()) return status;
  return std::make_unique<Communicator>(comm);
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Split(int color, int key, bool share) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = share ? 1 : 0;
  ncclComm_t comm = nullptr;
  const int nccl_color = color < 0 ? NCCL_SPLIT_NOCOLOR : color;
  absl::Status status = NcclStatus(ncclCommSplit(comm_, nccl_color, key, &comm, &config), "ncclCommSplit", comm_);
  if (!status.ok()) return status;
  return comm == nullptr ? nullptr : std::make_unique<Communicator>(comm);
}

int Communicator::rank() const {
  int rank = 0;
  ncclCommUserRank(comm_, &rank);
  return rank;
}

int Communicator::ranks() const {
  int ranks = 1;
  ncclCommCount(comm_, &ranks);
  return ranks;
}

absl::Status Communicator::AsyncError() {
  ncclResult_t state = ncclSuccess;
  absl::Status status = NcclStatus(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
  if (!status.ok() || state == ncclInProgress) return status;
  return NcclStatus(state, "NCCL reports", comm_);
}

absl::Status Communicator::Wait(const Stream& stream) {
  for (uint64_t round = 1;; ++round) {
    const cudaError_t state = cudaStreamQuery(stream.get());
    if (state == cudaSuccess) return AsyncError();
    if (state != cudaErrorNotReady) return CudaStatus(state, "on the stream");
    if (round % kRoundsPerLook == 0) {
      if (absl::Status status = AsyncError(); !status.ok()) return status;
    }
    sched_yield();
  }
}

absl::Status Communicator::Close() {
  ncclComm_t comm = comm_;
  comm_ = nullptr;
  return NcclStatus(ncclCommDestroy(comm), "ncclCommDestroy", nullptr);
}

void Communicator::Abort() {
  if (comm_ != nullptr) ncclCommAbort(comm_);
  comm_ = nullptr;
}

}  // namespace nccl_bench
}  // namespace tcpx
