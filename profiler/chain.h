// chain.h: another profiler after this one, because NCCL has room for one.
//
// Purpose: what NCCL calls is passed on with the other profiler's own contexts and handles. Asked for the version that
//          NCCL uses, and then for older ones, for which events are converted as NCCL would.
// Threads: any, as NCCL's calls come.
// Lifetime: the library stays loaded as long as this.
// Errors:  Load says why there is none. What the other profiler returns is returned.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "nccl/profiler_tables.h"

namespace tcpx {

// A communicator, as NCCL describes it to init.
struct CommunicatorFacts {
  uint64_t id = 0;
  const char* name = nullptr;  // may be null
  int nodes = 0;
  int ranks = 0;
  int rank = 0;
  ncclDebugLogger_t logger = nullptr;
};

class Chain {
 public:
  // `version`: 4 to 6.
  static absl::StatusOr<std::unique_ptr<Chain>> Load(const std::string& path, int version);
  ~Chain();

  const char* name() const;
  int version() const { return version_; }

  ncclResult_t Init(void** context, int* mask, const CommunicatorFacts& facts);
  // `event`'s parents are the other profiler's. *handle stays null where it knows no such events.
  ncclResult_t Start(void* context, void** handle, const ncclProfilerEventDescr_v6_t& event);
  ncclResult_t Stop(void* handle);
  ncclResult_t Note(void* handle, ncclProfilerEventState_t state, ncclProfilerEventStateArgs_v5_t* args);
  ncclResult_t Finalize(void* context);

 private:
  using Table = std::variant<ncclProfiler_v4_t*, ncclProfiler_v5_t*>;  // v6 as v5
  Chain(void* library, int version, Table table) : library_(library), version_(version), table_(table) {}

  void* const library_;
  const int version_;
  const Table table_;
};

}  // namespace tcpx
