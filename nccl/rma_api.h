// rma_api.h: what the transport offers to the tables of one-sided transfers, in neutral types.
//
// Purpose: the seam between ncclRmaPlugin_vN (nccl/rma_shims) and net_socket/rma. A group is NCCL's collComm: ranks
//          that reach into each other's registered memory. Contexts are domains of order within a group.
// Threads: as NCCL: one thread posts, tests and moves, while another may register memory.
// Units:   sizes and offsets are bytes; an offset counts from the start of its region.
// Errors:  as plugin_api.h. A group that has failed answers every call with its first error.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nccl/plugin_api.h"

namespace tcpx {

// Opaque to the tables.
class RmaListen;    // what listen returns
class RmaGroup;     // what connect returns
class RmaContexts;  // what createContext returns
class RmaRequest;   // an operation that has not been reported done

// Names a region in all calls: not 0, below 2^33. It is the same on all ranks, because NCCL registers in the same
// order.
using RmaHandle = uint64_t;

// What memory is registered for, as far as NCCL shows it.
enum class RmaUse {
  kOther,
  kWindow,   // the user's. A group with windows fails when a peer has closed
  kSignals,  // words that nobody but the plugin writes as long as they are registered
};

struct RmaOperation {
  bool get = false;  // from the peer's region to the local one; else a put
  uint32_t rank = 0;
  size_t bytes = 0;
  RmaHandle local = 0;  // ignored if there are no bytes, as is `remote`
  uint64_t local_offset = 0;
  RmaHandle remote = 0;
  uint64_t remote_offset = 0;
  // A put's signal: adds to the 64-bit word there once the bytes are in place. If it is strong, or has no bytes, it
  // also waits for all earlier puts and signals of the context to this peer.
  bool has_signal = false;
  bool strong = true;
  RmaHandle signal = 0;
  uint64_t signal_offset = 0;
  uint64_t signal_add = 0;
  bool more_follow = false;  // a hint: the next one comes at once
};

class RmaTransferApi {
 public:
  virtual ~RmaTransferApi() = default;

  // Never refused because there is no room; it may wait for the next Test or Progress. Done means for a put that the
  // source may be overwritten, and for a get that the bytes are in place.
  virtual absl::Status Post(RmaContexts* contexts, int context, const RmaOperation& operation,
                            RmaRequest** request) = 0;
  // Makes the bytes of finished gets visible to the GPU. Its request is done at once.
  virtual absl::Status Flush(RmaContexts* contexts, int context, uint32_t rank, RmaRequest** request) = 0;
  // Always writes *done; once that is true the request is gone. Moves the group.
  virtual absl::Status Test(RmaGroup* group, RmaRequest* request, bool* done) = 0;
  virtual absl::Status Progress(RmaContexts* contexts) = 0;
  virtual bool HasFailed(RmaContexts* contexts) = 0;
};

class RmaGroupApi {
 public:
  virtual ~RmaGroupApi() = default;

  // False: switched off, or not possible here.
  virtual bool Offered() = 0;
  // `handle` points to kHandleBytes bytes.
  virtual absl::StatusOr<RmaListen*> Listen(Context* context, int device, void* handle) = 0;
  virtual void CloseListen(RmaListen* listen) = 0;
  // Collective: waits until the next rank has answered. `handles` has an entry for each rank.
  virtual absl::StatusOr<RmaGroup*> Connect(RmaListen* listen, absl::Span<void* const> handles, uint32_t rank) = 0;
  // Sends what is queued, for a bounded time.
  virtual void Close(RmaGroup* group) = 0;
  // `traffic_class`: as in ContextOptions, for connections that are dialled from now on.
  virtual absl::StatusOr<RmaContexts*> OpenContexts(RmaGroup* group, int count, int traffic_class) = 0;
  // After the return no unfinished operation of theirs touches memory.
  virtual void CloseContexts(RmaContexts* contexts) = 0;
  virtual absl::StatusOr<RmaHandle> Register(RmaGroup* group, void* data, size_t bytes, MemoryType type,
                                             RmaUse use) = 0;
  // After the return nothing touches the region.
  virtual void Deregister(RmaGroup* group, RmaHandle region) = 0;
};

class RmaApi : public RmaTransferApi, public RmaGroupApi {};

// What the exported tables call: the shared library defines it with the transport, a test with a fake.
RmaApi& TheRma();

}  // namespace tcpx
