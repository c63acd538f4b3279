// rma_tables.h: versions 14 to 16 of the one-sided plugin interface: NCCL 2.30.7, 2.31.2 and 2.32.3.
//
// Purpose: puts into a peer's memory, signals and gets, of a group of ranks. The symbol ncclRmaPlugin_vN is an
//          ncclRma_vN_t. A table is made of the parts that the versions share, one after the other.
// Units:   sizes and offsets are bytes; offsets count from the address that regMrSym was given.
// Errors:  ncclResult_t, see net_types.h.
// Source:  these releases; tests/abi checks every offset.
#pragma once

#include "nccl/net_tables.h"

enum {
  NCCL_NET_MR_FLAG_FORCE_SO = 1 << 0,            // writes to this region must be strongly ordered
  NCCL_NET_MR_FLAG_SIGNAL_NEVER_RESET = 1 << 1,  // signals that nobody but the plugin writes
};

enum {
  NCCL_NET_SIGNAL_OP_INC = 0x1,  // adds 1, whatever the value
  NCCL_NET_SIGNAL_OP_ADD = 0x2,  // adds the value, 64 bits
};

// Valid during the call only.
typedef struct {
  int nContexts;
  int trafficClass;  // NCCL_NET_TRAFFIC_CLASS_UNDEF: not set
  int rankStride;    // the contexts serve ranks (rank + k * stride) only; 0 and below: as 1
} ncclRmaConfig_v14_t;

struct ncclRmaInit_v14 {
  const char* name;
  ncclResult_t (*init)(void** ctx, uint64_t commId, ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int* ndev);
};

struct ncclRmaSetUp_v14 {
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t* props);
  ncclResult_t (*listen)(void* ctx, int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(void* ctx, void* handles[], int nranks, int rank, void* listenComm, void** collComm);
  ncclResult_t (*createContext)(void* collComm, ncclRmaConfig_v14_t* config, void** rmaCtx);
  ncclResult_t (*regMrSym)(void* collComm, void* data, size_t size, int type, uint64_t mrFlags, void** mhandle);
  ncclResult_t (*regMrSymDmaBuf)(void* collComm, void* data, size_t size, int type, uint64_t offset, int fd,
                                 uint64_t mrFlags, void** mhandle);  // may be null
  ncclResult_t (*deregMrSym)(void* collComm, void* mhandle);
  ncclResult_t (*destroyContext)(void* rmaCtx);
  ncclResult_t (*closeColl)(void* collComm);
  ncclResult_t (*closeListen)(void* listenComm);
};

// `optFlags`: from v15 on.
template <class... OptFlags>
struct ncclRmaOperations {
  ncclResult_t (*iput)(void* rmaCtx, int context, uint64_t srcOff, void* srcMhandle, size_t size, uint64_t dstOff,
                       void* dstMhandle, uint32_t rank, OptFlags... optFlags, void** request);
  ncclResult_t (*iputSignal)(void* rmaCtx, int context, uint64_t srcOff, void* srcMhandle, size_t size, uint64_t dstOff,
                             void* dstMhandle, uint32_t rank, uint64_t signalOff, void* signalMhandle,
                             uint64_t signalValue, uint32_t signalOp, bool isStrongSignal, OptFlags... optFlags,
                             void** request);
  ncclResult_t (*iget)(void* rmaCtx, int context, uint64_t remoteOff, void* remoteMhandle, size_t size,
                       uint64_t localOff, void* localMhandle, uint32_t rank, OptFlags... optFlags, void** request);
};

struct ncclRmaProgress_v14 {
  ncclResult_t (*iflush)(void* rmaCtx, int context, void* mhandle, uint32_t rank, void** request);
  ncclResult_t (*test)(void* collComm, void* request, int* done);
  ncclResult_t (*rmaProgress)(void* rmaCtx);
  ncclResult_t (*queryLastError)(void* rmaCtx, bool* hasError);
  ncclResult_t (*finalize)(void* ctx);
};

// Version 14: NCCL 2.30.7.
struct ncclRma_v14_t : ncclRmaInit_v14, ncclRmaSetUp_v14, ncclRmaOperations<>, ncclRmaProgress_v14 {};

// Version 15: NCCL 2.31.2. Against v14: options of each operation.
typedef ncclRmaConfig_v14_t ncclRmaConfig_v15_t;

enum {
  ncclRmaOptFlagsDefault = 0,
  ncclRmaOptFlagsAggregateRequests = 1 << 0,  // more follow: a hint
};

struct ncclRma_v15_t : ncclRmaInit_v14, ncclRmaSetUp_v14, ncclRmaOperations<uint32_t>, ncclRmaProgress_v14 {};

// Version 16: NCCL 2.32.3. Against v15: the properties of a group.
typedef ncclRmaConfig_v14_t ncclRmaConfig_v16_t;

typedef struct {
  bool flushesAllPutsOnAnySignal;  // any signal, from any peer, shows all puts that were received before
} ncclRmaProperties_v16_t;

struct ncclRmaGetProperties_v16 {
  ncclResult_t (*getRmaProperties)(void* collComm, ncclRmaProperties_v16_t* rmaProps);
};

struct ncclRma_v16_t : ncclRmaInit_v14,
                       ncclRmaGetProperties_v16,
                       ncclRmaSetUp_v14,
                       ncclRmaOperations<uint32_t>,
                       ncclRmaProgress_v14 {};

static_assert(sizeof(ncclRma_v14_t) == 168, "ABI of v14");
static_assert(sizeof(ncclRma_v15_t) == 168, "ABI of v15");
static_assert(sizeof(ncclRma_v16_t) == 176, "ABI of v16");
