// rma_client.h: the consumer's side of the tables of one-sided transfers: opens any library that exports one.
//
// Purpose: benchmarks and tests drive ncclRmaPlugin_v14 to _v16 with one newest-shaped interface. What an older version
//          lacks is adapted as NCCL's own adapters do it: no flags before v15, no properties of a group before v16.
// Threads: as NCCL: one thread posts, tests and moves a group, while another may register memory. Immutable after Open.
// Units:   sizes and offsets are bytes; offsets count from the start of a region.
// Errors:  Open returns a Status that names the path and the loader's text. All else returns the plugin's own result.
// Source:  the adapters of NCCL 2.31 and 2.32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "nccl/client/open_library.h"
#include "nccl/rma_tables.h"

namespace tcpx {

inline constexpr int kOldestRmaVersion = 14;
inline constexpr int kNewestRmaVersion = 16;

// One put, or get: `local` and `remote` are mhandles of this rank.
struct RmaRange {
  void* local = nullptr;
  uint64_t local_offset = 0;
  void* remote = nullptr;
  uint64_t remote_offset = 0;
  size_t bytes = 0;
  uint32_t rank = 0;
};

struct RmaSignal {
  void* region = nullptr;  // an mhandle of this rank
  uint64_t offset = 0;
  uint64_t value = 1;
  uint32_t op = NCCL_NET_SIGNAL_OP_ADD;
  bool strong = true;
};

class RmaClient {
 public:
  // Opens `path` with RTLD_NOW | RTLD_LOCAL and takes the newest of v16..v14 that it exports, or exactly `version`.
  static absl::StatusOr<std::unique_ptr<RmaClient>> Open(const std::string& path, int version = 0);
  // `table` lives while `library` is open; a null library means that it lives as long as the program.
  explicit RmaClient(const ncclRma_v14_t& table, LibraryHandle library = nullptr)
      : RmaClient(14, table, std::move(library)) {
    old_ = table;
  }
  explicit RmaClient(const ncclRma_v15_t& table, LibraryHandle library = nullptr)
      : RmaClient(15, table, std::move(library)) {
    Take<ncclRmaOperations<uint32_t>>(table);
  }
  explicit RmaClient(const ncclRma_v16_t& table, LibraryHandle library = nullptr)
      : RmaClient(16, table, std::move(library)) {
    table_ = table;
  }

  int version() const { return version_; }
  const char* name() const { return table_.name; }

  ncclResult_t Init(void** ctx, uint64_t comm_id, ncclDebugLogger_t log) { return table_.init(ctx, comm_id, log); }
  ncclResult_t Finalize(void* ctx) { return table_.finalize(ctx); }
  ncclResult_t Devices(int* count) { return table_.devices(count); }
  ncclResult_t GetProperties(int dev, ncclNetProperties_v12_t* props) { return table_.getProperties(dev, props); }
  // Before v16: nothing is promised, nothing called.
  ncclResult_t GetRmaProperties(void* coll_comm, ncclRmaProperties_v16_t* props);
  ncclResult_t Listen(void* ctx, int dev, void* handle, void** listen_comm) {
    return table_.listen(ctx, dev, handle, listen_comm);
  }
  // Collective, and waits.
  ncclResult_t Connect(void* ctx, void** handles, int ranks, int rank, void* listen_comm, void** coll_comm) {
    return table_.connect(ctx, handles, ranks, rank, listen_comm, coll_comm);
  }
  ncclResult_t CreateContext(void* coll_comm, int count, int traffic_class, void** rma_ctx);
  ncclResult_t RegMrSym(void* coll_comm, void* data, size_t size, int type, uint64_t flags, void** mhandle) {
    return table_.regMrSym(coll_comm, data, size, type, flags, mhandle);
  }
  ncclResult_t DeregMrSym(void* coll_comm, void* mhandle) { return table_.deregMrSym(coll_comm, mhandle); }
  ncclResult_t DestroyContext(void* rma_ctx) { return table_.destroyContext(rma_ctx); }
  ncclResult_t CloseColl(void* coll_comm) { return table_.closeColl(coll_comm); }
  ncclResult_t CloseListen(void* listen_comm) { return table_.closeListen(listen_comm); }

  // `flags`: ncclRmaOptFlags; dropped before v15.
  ncclResult_t Iput(void* rma_ctx, int context, const RmaRange& range, uint32_t flags, void** request);
  ncclResult_t IputSignal(void* rma_ctx, int context, const RmaRange& range, const RmaSignal& signal, uint32_t flags,
                          void** request);
  ncclResult_t Iget(void* rma_ctx, int context, const RmaRange& range, uint32_t flags, void** request);
  // Where the table has none: done, and *request is null.
  ncclResult_t Iflush(void* rma_ctx, int context, void* mhandle, uint32_t rank, void** request);
  ncclResult_t Test(void* coll_comm, void* request, int* done) { return table_.test(coll_comm, request, done); }
  // Where the table has none, the next two: nothing to do, no error.
  ncclResult_t Progress(void* rma_ctx);
  ncclResult_t QueryLastError(void* rma_ctx, bool* has_error);

 private:
  template <class Table>
  RmaClient(int version, const Table& table, LibraryHandle library) : library_(std::move(library)), version_(version) {
    Take<ncclRmaInit_v14>(table);
    Take<ncclRmaSetUp_v14>(table);
    Take<ncclRmaProgress_v14>(table);
  }
  template <class Part>
  void Take(const Part& part) {
    static_cast<Part&>(table_) = part;
  }
  // An operation: `old` before v15, which takes no flags.
  template <class Old, class New, class... Arguments>
  ncclResult_t Call(Old old, New now, uint32_t flags, void** request, Arguments... arguments) {
    return version_ < 15 ? old(arguments..., request) : now(arguments..., flags, request);
  }

  const LibraryHandle library_;
  const int version_;
  ncclRma_v16_t table_ = {};      // of an older version: the parts that it has
  ncclRmaOperations<> old_ = {};  // v14 only
};

}  // namespace tcpx
