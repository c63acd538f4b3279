#include "bench/nccl_bench/one_sided.h"

#include <dlfcn.h>
#include <stdio.h>

#include <cstdint>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/nccl_bench/launch.h"
#include "common/clock.h"

namespace tcpx {
namespace nccl_bench {
namespace {

constexpr int kSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
// Sizes of puts: two that share messages with others, one that has its own message, and one that has several chunks.
// The large ones are multiples of nothing.
constexpr size_t kPutSizes[] = {8, 5001, 100'003, 4'000'001};
constexpr size_t kPlace = 4 << 20;  // of each peer, at each end
constexpr int kPings = 200;

struct WaitSignal {  // ncclWaitSignalDesc_t
  int count;
  int peer;
  int signal;
  int context;
};

struct Functions {
  ncclResult_t (*allocate)(void** data, size_t bytes);
  ncclResult_t (*free)(void* data);
  ncclResult_t (*add_window)(ncclComm_t comm, void* data, size_t bytes, void** window, int flags);
  ncclResult_t (*remove_window)(ncclComm_t comm, void* window);
  ncclResult_t (*put)(const void* from, size_t count, ncclDataType_t type, int peer, void* window, size_t offset,
                      int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream);
  ncclResult_t (*wait)(int count, WaitSignal* signals, ncclComm_t comm, cudaStream_t stream);
  ncclResult_t (*all_to_all)(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                             cudaStream_t stream);
};

template <typename Function>
absl::Status Find(const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("this NCCL has no ", name, ": one-sided transfers need 2.30.7"));
}

absl::Status FindAll(Functions* all) {
  absl::Status status = Find("ncclPutSignal", &all->put);
  status.Update(Find("ncclWaitSignal", &all->wait));
  status.Update(Find("ncclMemAlloc", &all->allocate));
  status.Update(Find("ncclMemFree", &all->free));
  status.Update(Find("ncclCommWindowRegister", &all->add_window));
  status.Update(Find("ncclCommWindowDeregister", &all->remove_window));
  status.Update(Find("ncclAlltoAll", &all->all_to_all));
  return status;
}

// Byte `i` of what `from` puts to `to` in a round.
char Byte(int from, int to, int round, size_t i) {
  return static_cast<char>(from * 31 + to * 17 + round * 7 + static_cast<int>(i % 251));
}

class OneSided {
 public:
  OneSided(const Job& job, Rendezvous* rendezvous, Communicator* comm, const Stream& stream)
      : job_(job), rendezvous_(rendezvous), comm_(comm), stream_(stream) {}

  absl::Status Run();

 private:
  size_t half() const { return static_cast<size_t>(job_.size) * kPlace; }
  absl::Status Nccl(ncclResult_t result, const char* what) const { return NcclStatus(result, what, comm_->get()); }
  absl::Status Fill(size_t bytes);
  absl::Status Put(int peer, size_t bytes);
  absl::Status Await(int peer);
  absl::Status PutToAll(size_t bytes);
  absl::Status Collect(bool to_all, size_t bytes);
  absl::Status Ping();
  // What came from each peer; `to_all`: what each sent to all is the same.
  absl::Status CheckAll(const char* what, size_t step, size_t bytes, bool same);
  absl::Status RunAll();
  absl::Status CheckPlugin() const;

  const Job& job_;
  Rendezvous* const rendezvous_;
  Communicator* const comm_;
  const Stream& stream_;
  Functions nccl_ = {};
  char* data_ = nullptr;  // what is put, by peer; then what comes, by peer
  void* window_ = nullptr;
  int round_ = 0;
};

absl::Status OneSided::Fill(size_t bytes) {
  ++round_;
  std::vector<char> host(half());
  for (int peer = 0; peer < job_.size; ++peer) {
    char* const place = host.data() + static_cast<size_t>(peer) * kPlace;
    for (size_t i = 0; i < bytes; ++i) place[i] = Byte(job_.rank, peer, round_, i);
  }
  absl::Status status =
      CudaStatus(cudaMemcpyAsync(data_, host.data(), half(), cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync");
  if (status.ok()) status = CudaStatus(cudaMemsetAsync(data_ + half(), 0, half(), stream_.get()), "cudaMemsetAsync");
  if (status.ok()) status = comm_->Wait(stream_);
  // Nobody puts before all have emptied their places.
  return status.ok() ? rendezvous_->Barrier() : status;
}

absl::Status OneSided::Put(int peer, size_t bytes) {
  const char* const from = data_ + static_cast<size_t>(peer) * kPlace;
  const size_t to = half() + static_cast<size_t>(job_.rank) * kPlace;
  return Nccl(nccl_.put(from, bytes, ncclInt8, peer, window_, to, 0, 0, 0, comm_->get(), stream_.get()),
              "ncclPutSignal");
}

absl::Status OneSided::Await(int peer) {
  WaitSignal signal = {1, peer, 0, 0};
  return Nccl(nccl_.wait(1, &signal, comm_->get(), stream_.get()), "ncclWaitSignal");
}

absl::Status OneSided::CheckAll(const char* what, size_t step, size_t bytes, bool same) {
  absl::Status status = comm_->Wait(stream_);
  std::vector<char> host(half());
  if (status.ok()) {
    status = CudaStatus(cudaMemcpyAsync(host.data(), data_ + half(), half(), cudaMemcpyDeviceToHost, stream_.get()),
                        "cudaMemcpyAsync");
  }
  if (status.ok()) status = comm_->Wait(stream_);
  if (!status.ok()) return status;
  for (int from = 0; from < job_.size; ++from) {
    if (from == job_.rank && !same) continue;
    for (size_t i = 0; i < bytes; ++i) {
      const char right = Byte(from, same ? 0 : job_.rank, round_, i);
      if (host[static_cast<size_t>(from) * step + i] == right) continue;
      return absl::DataLossError(
          absl::StrCat(what, " of ", bytes, " bytes: byte ", i, " from rank ", from, " is wrong"));
    }
  }
  return rendezvous_->Barrier();
}

absl::Status OneSided::PutToAll(size_t bytes) {
  absl::Status status = Fill(bytes);
  if (status.ok()) status = Nccl(ncclGroupStart(), "ncclGroupStart");
  for (int peer = 0; peer < job_.size && status.ok(); ++peer) {
    if (peer != job_.rank) status = Put(peer, bytes);
  }
  if (status.ok()) status = Nccl(ncclGroupEnd(), "ncclGroupEnd");
  for (int peer = 0; peer < job_.size && status.ok(); ++peer) {
    if (peer != job_.rank) status = Await(peer);
  }
  return status.ok() ? CheckAll("a put", kPlace, bytes, /*same=*/false) : status;
}

// Blocks lie one after the other; those of an all-gather are what is put to rank 0.
absl::Status OneSided::Collect(bool to_all, size_t bytes) {
  absl::Status status = Fill(bytes);
  if (status.ok() && !to_all) {
    status = Nccl(ncclAllGather(data_, data_ + half(), bytes, ncclInt8, comm_->get(), stream_.get()), "ncclAllGather");
    return status.ok() ? CheckAll("an all-gather on windows", bytes, bytes, /*same=*/true) : status;
  }
  if (!status.ok()) return status;
  // As whole places: their ends are 0 on all ranks.
  status = Nccl(nccl_.all_to_all(data_, data_ + half(), kPlace, ncclInt8, comm_->get(), stream_.get()), "ncclAlltoAll");
  return status.ok() ? CheckAll("an all-to-all on windows", kPlace, bytes, /*same=*/false) : status;
}

// Ranks 0 and 1.
absl::Status OneSided::Ping() {
  absl::Status status = Fill(8);
  if (job_.rank > 1 || !status.ok()) return status.ok() ? rendezvous_->Barrier() : status;
  const int64_t began_ns = MonotonicNanos();
  for (int i = 0; i < kPings && status.ok(); ++i) {
    status = job_.rank == 0 ? Put(1, 8) : Await(0);
    if (status.ok()) status = job_.rank == 0 ? Await(1) : Put(0, 8);
  }
  if (status.ok()) status = comm_->Wait(stream_);
  if (!status.ok()) return status;
  const double half_trip_us = static_cast<double>(MonotonicNanos() - began_ns) * 1e-3 / (2 * kPings);
  if (job_.rank == 0) printf("# one-sided: 8 bytes with a signal, half a round trip: %.1f us\n", half_trip_us);
  return rendezvous_->Barrier();
}

absl::Status OneSided::CheckPlugin() const {
  const std::string net = ProcessEnvironment(kNetVariable);
  if (net.empty()) return absl::OkStatus();
  fflush(nullptr);  // NCCL's file is one of this process' streams.
  std::ifstream file(ProcessEnvironment("NCCL_DEBUG_FILE"));
  for (std::string line; std::getline(file, line);) {
    if (absl::StrContains(line, absl::StrCat("RMA/Plugin: Assigned plugin ", net))) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("NCCL's log does not say that ", net, " does one-sided transfers"));
}

absl::Status OneSided::RunAll() {
  absl::Status status;
  for (const size_t bytes : kPutSizes) {
    if (status.ok()) status = PutToAll(bytes);
  }
  if (status.ok()) status = Ping();
  if (status.ok() && job_.rank == 0) printf("# one-sided: puts of up to %zu bytes are right\n", kPutSizes[3]);
  for (const bool to_all : {false, true}) {
    if (status.ok()) status = Collect(to_all, 1 << 20);
  }
  if (status.ok() && job_.rank == 0) printf("# one-sided: collectives on windows are right\n");
  return status;
}

// After an error all stays as it is: peers may still write.
absl::Status OneSided::Run() {
  absl::Status status = FindAll(&nccl_);
  if (!status.ok()) return status;
  void* data = nullptr;
  status = Nccl(nccl_.allocate(&data, 2 * half()), "ncclMemAlloc");
  data_ = static_cast<char*>(data);
  if (status.ok()) {
    status = Nccl(nccl_.add_window(comm_->get(), data_, 2 * half(), &window_, kSymmetric), "ncclCommWindowRegister");
  }
  if (status.ok()) status = CheckPlugin();
  if (status.ok()) status = RunAll();
  if (status.ok()) status = Nccl(nccl_.remove_window(comm_->get(), window_), "ncclCommWindowDeregister");
  if (status.ok()) status = Nccl(nccl_.free(data_), "ncclMemFree");
  return status;
}

}  // namespace

absl::Status CheckOneSided(const Job& job, Rendezvous* rendezvous, Communicator* comm, const Stream& stream) {
  return OneSided(job, rendezvous, comm, stream).Run();
}

}  // namespace nccl_bench
}  // namespace tcpx
