// rma_v14.h: version 14 of the one-sided plugin interface: NCCL 2.30.7.
//
// Purpose: puts into a peer's memory, signals and gets, of a group of ranks.
// Units:   sizes and offsets are bytes; offsets count from the address that regMrSym was given.
// Errors:  ncclResult_t, see net_types.h.
// Source:  NCCL 2.30.7; tests/abi checks every offset.
#pragma once

#include "nccl/net_types.h"
#include "nccl/net_v12.h"

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

// Of v14 and v15. The symbols ncclRmaPlugin_v14 and ncclRmaPlugin_v15 are such tables.
template <class... OptFlags>
struct ncclRmaTable_v14 {
  const char* name;
  ncclResult_t (*init)(void** ctx, uint64_t commId, ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int* ndev);
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
  ncclResult_t (*iput)(void* rmaCtx, int context, uint64_t srcOff, void* srcMhandle, size_t size, uint64_t dstOff,
                       void* dstMhandle, uint32_t rank, OptFlags... optFlags, void** request);
  ncclResult_t (*iputSignal)(void* rmaCtx, int context, uint64_t srcOff, void* srcMhandle, size_t size, uint64_t dstOff,
                             void* dstMhandle, uint32_t rank, uint64_t signalOff, void* signalMhandle,
                             uint64_t signalValue, uint32_t signalOp, bool isStrongSignal, OptFlags... optFlags,
                             void** request);
  ncclResult_t (*iget)(void* rmaCtx, int context, uint64_t remoteOff, void* remoteMhandle, size_t size,
                       uint64_t localOff, void* localMhandle, uint32_t rank, OptFlags... optFlags, void** request);
  ncclResult_t (*iflush)(void* rmaCtx, int context, void* mhandle, uint32_t rank, void** request);
  ncclResult_t (*test)(void* collComm, void* request, int* done);
  ncclResult_t (*rmaProgress)(void* rmaCtx);
  ncclResult_t (*queryLastError)(void* rmaCtx, bool* hasError);
  ncclResult_t (*finalize)(void* ctx);
};

typedef ncclRmaTable_v14<> ncclRma_v14_t;

static_assert(sizeof(ncclRma_v14_t) == 168, "ABI of v14");
