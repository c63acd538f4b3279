// rma_lab.h: the ranks of a group of one-sided transfers in one process, through the tables of the built library.
//
// Purpose: opens the library with TCPX_RMA=1, connects the ranks with each other, and registers on all of them in the
//          same order, as NCCL does.
//
//   auto lab = RmaLab::Open(mode, {.ranks = 3});
//   auto region = (*lab)->Register(65536);
//   ... (*lab)->rma().Iput((*lab)->rank(0).contexts, 0, range, 0, &request) ...
// Threads: one, but for Connect and Close, which move all ranks at once.
// Lifetime: the destructor closes what is open and finalizes.
// Errors:  a Status with the plugin's result and its log. Every wait is bounded (deadline.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/client/rma_client.h"
#include "tests/support/gpu_lab.h"
#include "tests/support/plugin_mode.h"

namespace tcpx {

struct RmaShape {
  int ranks = 2;
  int contexts = 1;
  int version = 0;        // of the table; 0: the newest
  uint64_t comm_id = 7;   // of the communicator
  GpuLab* gpu = nullptr;  // of its driver; null: there is none
};

// Memory of each rank: of no alignment that the plugin could rely on, but that of a signal's word.
struct RmaMemory {
  struct Part {
    std::vector<uint64_t> words;
    std::unique_ptr<GpuBuffer> gpu;  // in place of them
    char* seen = nullptr;            // where the host looks
    void* mhandle = nullptr;
  };
  size_t bytes = 0;
  std::vector<Part> parts;  // by rank

  char* at(int rank, uint64_t offset = 0) { return parts[static_cast<size_t>(rank)].seen + offset; }
  void* of(int rank) const { return parts[static_cast<size_t>(rank)].mhandle; }
  // The word that a poller looks at.
  uint64_t Word(int rank, uint64_t offset) {
    return __atomic_load_n(reinterpret_cast<uint64_t*>(at(rank, offset)), __ATOMIC_ACQUIRE);
  }
};

class RmaLab {
 public:
  struct Rank {
    void* context = nullptr;  // of init
    void* group = nullptr;
    void* contexts = nullptr;                               // of createContext; null: destroyed
    std::array<char, NCCL_NET_HANDLE_MAXSIZE> handle = {};  // as listen wrote it
    void* listen = nullptr;
  };

  // In the environment of `mode`, and TCPX_RMA=1.
  static absl::StatusOr<std::unique_ptr<RmaLab>> Open(const Mode& mode, const RmaShape& shape);
  ~RmaLab();

  RmaClient& rma() { return *client_; }
  int ranks() const { return static_cast<int>(ranks_.size()); }
  Rank& rank(int number) { return ranks_[static_cast<size_t>(number)]; }

  // `flags` as regMrSym has them. The memory lives as long as the lab.
  absl::StatusOr<RmaMemory*> Register(size_t bytes, uint64_t flags = 0) { return Register(bytes, flags, false); }
  // `on_gpu`: of the stand-in driver, through which the host can look at it.
  absl::StatusOr<RmaMemory*> Register(size_t bytes, uint64_t flags, bool on_gpu);
  // Memory of the test's own, of one rank. The others register something too, in the same order.
  absl::StatusOr<void*> RegisterAt(int rank, void* data, size_t bytes, uint64_t flags = 0);
  void Deregister(const RmaMemory& memory, int rank);
  void Deregister(const RmaMemory& memory);

  // Moves every rank that is open, and returns its first error.
  absl::Status Progress();
  // Until `done` or an error; all ranks move.
  absl::Status Until(const std::function<bool()>& done);
  absl::Status Wait(int rank, void* request);
  // Until `rank` has failed, whatever the calls of the others return.
  absl::Status UntilFailed(int rank);

  // Bounded; the others move meanwhile.
  absl::Status Close(int rank);
  // All at once.
  absl::Status CloseAll();
  bool HasFailed(int rank);

 private:
  explicit RmaLab(const RmaShape& shape) : gpu_(shape.gpu), ranks_(static_cast<size_t>(shape.ranks)) {}
  absl::Status Connect(const RmaShape& shape);
  absl::Status InParallel(const std::function<absl::Status(int)>& body);

  GpuLab* const gpu_;
  ScopedEnvironment environment_;
  std::unique_ptr<RmaClient> client_;
  std::vector<Rank> ranks_;
  std::deque<RmaMemory> memories_;
};

}  // namespace tcpx
