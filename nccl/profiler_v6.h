// profiler_v6.h: version 6 of the profiler plugin interface: NCCL 2.29.2 to 2.30.7.
//
// Purpose: against v5: collectives of the copy engines (ceColl, ceCollSync, ceCollBatch).
// Threads, units, errors, source: see profiler_types.h.
#pragma once

#include "nccl/profiler_v5.h"

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
    struct {
      uint64_t seqNumber;
      const char* func;
      const void* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      const char* syncStrategy;
      bool intraBatchSync;
      uint32_t batchSize;
      uint32_t numBatches;
      uint32_t ceSeqNum;
      void* stream;
    } ceColl;
    struct {
      bool isComplete;
      int nRanks;
    } ceCollSync;
    struct {
      int numOps;
      size_t totalBytes;
      bool useIntraSync;
    } ceCollBatch;
  };
} ncclProfilerEventDescr_v6_t;

typedef ncclProfilerTable_v5<ncclProfilerEventDescr_v6_t> ncclProfiler_v6_t;

static_assert(sizeof(ncclProfilerEventDescr_v6_t) == 112 && sizeof(ncclProfiler_v6_t) == 48,
              "ABI of NCCL 2.27 to 2.30");
