// profiler_v5.h: version 5 of the profiler plugin interface: NCCL 2.28.x.
//
// Purpose: against v4: a 64-bit type, the calls of the application (groupApi, collApi, p2pApi, kernelLaunch), and
//          parentGroup.
// Threads, units, errors, source: see profiler_types.h.
#pragma once

#include "nccl/profiler_types.h"

// Parts of the descriptors, from v5 on.
typedef struct {
  bool graphCaptured;
  int groupDepth;
} ncclProfilerGroupApi_v5_t;

typedef struct {
  const char* func;
  size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool graphCaptured;
} ncclProfilerCollApi_v5_t;

typedef struct {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  bool graphCaptured;
} ncclProfilerP2pApi_v5_t;

typedef struct {
  void* stream;
} ncclProfilerKernelLaunch_v5_t;

typedef struct {
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
  void* parentGroup;
} ncclProfilerColl_v5_t;

typedef struct {
  const char* func;
  void* buff;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t nChannels;
  void* parentGroup;
} ncclProfilerP2p_v5_t;

// `type` says which member of the union is set. Texts are NCCL's own and live on.
typedef struct {
  uint64_t type;
  void* parentObj;
  int rank;
  union {
    ncclProfilerGroupApi_v5_t groupApi;
    ncclProfilerCollApi_v5_t collApi;
    ncclProfilerP2pApi_v5_t p2pApi;
    ncclProfilerKernelLaunch_v5_t kernelLaunch;
    ncclProfilerColl_v5_t coll;
    ncclProfilerP2p_v5_t p2p;
    ncclProfilerProxyOp_t proxyOp;
    ncclProfilerProxyStep_t proxyStep;
    ncclProfilerKernelCh_t kernelCh;
    ncclProfilerNetPlugin_t netPlugin;
  };
} ncclProfilerEventDescr_v5_t;

// Of v5 and v6.
template <class Descriptor>
struct ncclProfilerTable_v5 {
  const char* name;
  // *eActivationMask is one of the process, and read again for each operation.
  ncclResult_t (*init)(void** context, uint64_t commId, int* eActivationMask, const char* commName, int nNodes,
                       int nranks, int rank, ncclDebugLogger_t logfn);
  // Leaves *eHandle null where the event is of no interest.
  ncclResult_t (*startEvent)(void* context, void** eHandle, Descriptor* eDescr);
  ncclResult_t (*stopEvent)(void* eHandle);
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v5_t eState,
                                   ncclProfilerEventStateArgs_v5_t* eStateArgs);
  ncclResult_t (*finalize)(void* context);
};

typedef ncclProfilerTable_v5<ncclProfilerEventDescr_v5_t> ncclProfiler_v5_t;

static_assert(sizeof(ncclProfilerEventDescr_v5_t) == 112 && sizeof(ncclProfiler_v5_t) == 48,
              "ABI of NCCL 2.27 to 2.30");
