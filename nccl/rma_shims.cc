#include "nccl/rma_shims.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"
#include "nccl/rma_api.h"
#include "nccl/shim_common.h"
#include "nccl/shims.h"

namespace tcpx::shim {
namespace {

// The interface that the network table of a release with RMA has: contexts have ends, and know their communicator.
constexpr int kNetVersionOfRma = 12;

RmaHandle HandleOf(void* mhandle) { return reinterpret_cast<RmaHandle>(mhandle); }
RmaGroup* GroupOf(void* coll_comm) { return static_cast<RmaGroup*>(coll_comm); }
RmaContexts* ContextsOf(void* rma_ctx) { return static_cast<RmaContexts*>(rma_ctx); }

ncclResult_t RmaInit(void** ctx, uint64_t comm_id, ncclDebugLogger_t log) {
  if (!Clear(ctx)) return ncclInvalidArgument;
  if (!TheRma().Offered()) return ncclSystemError;
  ContextOptions options{kNetVersionOfRma, comm_id};
  options.one_sided = true;
  return Deliver(CreateContext(options, log, nullptr), ctx);
}

// Equal to the net table's: both describe the same node of NCCL's topology, and this one is asked first.
ncclResult_t RmaProperties(int dev, ncclNetProperties_v12_t* properties) {
  const ncclResult_t result = ncclNetPlugin_v12.getProperties(dev, properties);
  if (result != ncclSuccess) return result;
  properties->netDeviceType = NCCL_NET_DEVICE_GIN_PROXY;
  properties->maxRecvs = 1;  // Times NCCL_NET_MAX_REQUESTS it is the depth of NCCL's queues: a power of two.
  return ncclSuccess;
}

ncclResult_t GroupProperties(void* coll_comm, ncclRmaProperties_v16_t* properties) {
  if (coll_comm == nullptr || properties == nullptr) return ncclInvalidArgument;
  properties->flushesAllPutsOnAnySignal = false;
  return ncclSuccess;
}

ncclResult_t RmaListenOn(void* ctx, int dev, void* handle, void** listen_comm) {
  if (!Clear(listen_comm) || ctx == nullptr || handle == nullptr) return ncclInvalidArgument;
  return Deliver(TheRma().Listen(static_cast<Context*>(ctx), dev, handle), listen_comm);
}

// `ctx` is the net table's where host RMA connects (2.30.7 to 2.32.3): only the listen comm counts.
ncclResult_t RmaConnect(void* /*ctx*/, void* handles[], int nranks, int rank, void* listen_comm, void** coll_comm) {
  if (!Clear(coll_comm) || handles == nullptr || listen_comm == nullptr) return ncclInvalidArgument;
  if (rank < 0 || rank >= nranks || std::count(handles, handles + nranks, nullptr) > 0) return ncclInvalidArgument;
  return Deliver(TheRma().Connect(static_cast<RmaListen*>(listen_comm), absl::MakeConstSpan(handles, nranks),
                                  static_cast<uint32_t>(rank)),
                 coll_comm);
}

ncclResult_t CreateContexts(void* coll_comm, ncclRmaConfig_v14_t* config, void** rma_ctx) {
  if (!Clear(rma_ctx) || coll_comm == nullptr || config == nullptr || config->nContexts < 1) return ncclInvalidArgument;
  const int traffic_class = TrafficClass(config->trafficClass);
  return Deliver(TheRma().OpenContexts(GroupOf(coll_comm), config->nContexts, traffic_class), rma_ctx);
}

// A user's window has no flags, but for NCCL_WIN_STRICT_ORDERING. NCCL's own memory is the host's or has some.
RmaUse UseOf(int type, uint64_t flags) {
  if ((flags & NCCL_NET_MR_FLAG_SIGNAL_NEVER_RESET) != 0) return RmaUse::kSignals;
  return type == NCCL_PTR_CUDA && flags == 0 ? RmaUse::kWindow : RmaUse::kOther;
}

ncclResult_t RegMrSym(void* coll_comm, void* data, size_t size, int type, uint64_t flags, void** mhandle) {
  if (!Clear(mhandle)) return ncclInvalidArgument;
  const bool sized = size <= PTRDIFF_MAX && (data != nullptr || size == 0);
  if (coll_comm == nullptr || !sized || (type != NCCL_PTR_HOST && type != NCCL_PTR_CUDA)) return ncclInvalidArgument;
  const auto region =
      TheRma().Register(GroupOf(coll_comm), data, size, static_cast<MemoryType>(type), UseOf(type, flags));
  if (region.ok()) *mhandle = reinterpret_cast<void*>(*region);
  return ResultFromStatus(region.status());
}

ncclResult_t DeregMrSym(void* coll_comm, void* mhandle) {
  if (coll_comm != nullptr && mhandle != nullptr) TheRma().Deregister(GroupOf(coll_comm), HandleOf(mhandle));
  return ncclSuccess;
}

ncclResult_t DestroyContexts(void* rma_ctx) {
  if (rma_ctx != nullptr) TheRma().CloseContexts(ContextsOf(rma_ctx));
  return ncclSuccess;
}

ncclResult_t CloseGroup(void* coll_comm) {
  if (coll_comm != nullptr) TheRma().Close(GroupOf(coll_comm));
  return ncclSuccess;
}

ncclResult_t CloseRmaListen(void* listen_comm) {
  if (listen_comm != nullptr) TheRma().CloseListen(static_cast<RmaListen*>(listen_comm));
  return ncclSuccess;
}

ncclResult_t Post(void* rma_ctx, int context, const RmaOperation& operation, void** request) {
  if (!Clear(request) || rma_ctx == nullptr) return ncclInvalidArgument;
  RmaRequest* posted = nullptr;
  const absl::Status status = TheRma().Post(ContextsOf(rma_ctx), context, operation, &posted);
  *request = posted;
  return ResultFromStatus(status);
}

RmaOperation Transfer(uint64_t local_offset, void* local, size_t size, uint64_t remote_offset, void* remote,
                      uint32_t rank, uint32_t flags) {
  RmaOperation operation{false, rank, size, HandleOf(local), local_offset, HandleOf(remote), remote_offset};
  operation.more_follow = (flags & ncclRmaOptFlagsAggregateRequests) != 0;
  return operation;
}

// With the flags of v15 and up, and without.
template <class... Flags>
struct Operations {
  static ncclResult_t Put(void* rma_ctx, int context, uint64_t source_offset, void* source, size_t size,
                          uint64_t target_offset, void* target, uint32_t rank, Flags... flags, void** request) {
    return Post(rma_ctx, context,
                Transfer(source_offset, source, size, target_offset, target, rank, (0u | ... | flags)), request);
  }

  static ncclResult_t PutSignal(void* rma_ctx, int context, uint64_t source_offset, void* source, size_t size,
                                uint64_t target_offset, void* target, uint32_t rank, uint64_t signal_offset,
                                void* signal, uint64_t value, uint32_t op, bool strong, Flags... flags,
                                void** request) {
    RmaOperation operation = Transfer(source_offset, source, size, target_offset, target, rank, (0u | ... | flags));
    operation.has_signal = true;
    operation.strong = strong;
    operation.signal = HandleOf(signal);
    operation.signal_offset = signal_offset;
    operation.signal_add = op == NCCL_NET_SIGNAL_OP_INC ? 1 : value;
    if (op != NCCL_NET_SIGNAL_OP_INC && op != NCCL_NET_SIGNAL_OP_ADD) {
      (void)Clear(request);
      return ncclInvalidArgument;
    }
    return Post(rma_ctx, context, operation, request);
  }

  static ncclResult_t Get(void* rma_ctx, int context, uint64_t remote_offset, void* remote, size_t size,
                          uint64_t local_offset, void* local, uint32_t rank, Flags... flags, void** request) {
    RmaOperation operation = Transfer(local_offset, local, size, remote_offset, remote, rank, (0u | ... | flags));
    operation.get = true;
    return Post(rma_ctx, context, operation, request);
  }
};

ncclResult_t RmaFlush(void* rma_ctx, int context, void* /*mhandle*/, uint32_t rank, void** request) {
  if (!Clear(request) || rma_ctx == nullptr) return ncclInvalidArgument;
  RmaRequest* posted = nullptr;
  const absl::Status status = TheRma().Flush(ContextsOf(rma_ctx), context, rank, &posted);
  *request = posted;
  return ResultFromStatus(status);
}

ncclResult_t RmaTest(void* coll_comm, void* request, int* done) {
  if (done == nullptr) return ncclInvalidArgument;
  *done = 0;
  if (coll_comm == nullptr || request == nullptr) return ncclInvalidArgument;
  bool finished = false;
  const absl::Status status = TheRma().Test(GroupOf(coll_comm), static_cast<RmaRequest*>(request), &finished);
  if (status.ok() && finished) *done = 1;
  return ResultFromStatus(status);
}

ncclResult_t RmaProgress(void* rma_ctx) {
  return rma_ctx == nullptr ? ncclInvalidArgument : ResultFromStatus(TheRma().Progress(ContextsOf(rma_ctx)));
}

ncclResult_t QueryLastError(void* rma_ctx, bool* has_error) {
  if (rma_ctx == nullptr || has_error == nullptr) return ncclInvalidArgument;
  *has_error = TheRma().HasFailed(ContextsOf(rma_ctx));
  return ncclSuccess;
}

template <class Table>
constexpr Table MakeTable() {
  using Own = std::conditional_t<std::is_same_v<Table, ncclRma_v14_t>, Operations<>, Operations<uint32_t>>;
  Table table = {};
  table.name = kName;
  table.init = RmaInit;
  table.devices = Devices;
  if constexpr (std::is_same_v<Table, ncclRma_v16_t>) table.getRmaProperties = GroupProperties;
  table.getProperties = RmaProperties;
  table.listen = RmaListenOn;
  table.connect = RmaConnect;
  table.createContext = CreateContexts;
  table.regMrSym = RegMrSym;
  table.deregMrSym = DeregMrSym;
  table.destroyContext = DestroyContexts;
  table.closeColl = CloseGroup;
  table.closeListen = CloseRmaListen;
  table.iput = Own::Put;
  table.iputSignal = Own::PutSignal;
  table.iget = Own::Get;
  table.iflush = RmaFlush;
  table.test = RmaTest;
  table.rmaProgress = RmaProgress;
  table.queryLastError = QueryLastError;
  table.finalize = Finalize;
  return table;
}

}  // namespace
}  // namespace tcpx::shim

extern "C" {
constexpr ncclRma_v14_t ncclRmaPlugin_v14 = tcpx::shim::MakeTable<ncclRma_v14_t>();
constexpr ncclRma_v15_t ncclRmaPlugin_v15 = tcpx::shim::MakeTable<ncclRma_v15_t>();
constexpr ncclRma_v16_t ncclRmaPlugin_v16 = tcpx::shim::MakeTable<ncclRma_v16_t>();
}  // extern "C"
