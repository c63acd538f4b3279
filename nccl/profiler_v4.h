// profiler_v4.h: version 4 of the profiler plugin interface: NCCL 2.27.x, and what 2.28 and later fall back to.
//
// Purpose: groups, collectives, proxy operations and their steps, network events.
// Threads, units, errors, source: see profiler_types.h.
#pragma once

#include "nccl/profiler_types.h"

// `type` says which member of the union is set. Texts are NCCL's own and live on.
typedef struct {
  uint8_t type;
  void* parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber;
      const char* func;
      const void* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t nChannels;
      uint8_t nWarps;
      const char* algo;
      const char* proto;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
    } p2p;
    ncclProfilerProxyOp_t proxyOp;
    ncclProfilerProxyStep_t proxyStep;
    ncclProfilerKernelCh_t kernelCh;
    ncclProfilerNetPlugin_t netPlugin;
  };
} ncclProfilerEventDescr_v4_t;

typedef struct {
  const char* name;
  // *eActivationMask is one of the process, and read again for each operation.
  ncclResult_t (*init)(void** context, int* eActivationMask, const char* commName, uint64_t commHash, int nNodes,
                       int nranks, int rank, ncclDebugLogger_t logfn);
  // Leaves *eHandle null where the event is of no interest.
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v4_t* eDescr);
  ncclResult_t (*stopEvent)(void* eHandle);
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v4_t eState,
                                   ncclProfilerEventStateArgs_v4_t* eStateArgs);
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v4_t;

static_assert(sizeof(ncclProfilerEventDescr_v4_t) == 104 && sizeof(ncclProfiler_v4_t) == 48,
              "ABI of NCCL 2.27 to 2.30");
