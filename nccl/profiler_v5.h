// profiler_v5.h: version 5 of the profiler plugin interface: NCCL 2.28.x.
//
// Purpose: against v4: a 64-bit type, the calls of the application (groupApi, collApi, p2pApi, kernelLaunch), and
//          parentGroup.
// Threads: init and finalize once per communicator; the others by several threads at once.
// Units:   counts are elements, sizes bytes.
// Errors:  ncclResult_t. stopEvent and recordEventState must accept null handles, startEvent null parents.
// Source:  NCCL 2.30.7; tests/abi checks every offset.
#pragma once

#include "nccl/profiler_types.h"

extern "C" {

// `type` says which member of the union is set. Texts are NCCL's own and live on.
typedef struct {
  uint64_t type;
  void* parentObj;
  int rank;
  union {
    struct {
      bool graphCaptured;
      int groupDepth;
    } groupApi;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool graphCaptured;
    } collApi;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      void* stream;
      bool graphCaptured;
    } p2pApi;
    struct {
      void* stream;
    } kernelLaunch;
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
      void* parentGroup;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
      void* parentGroup;
    } p2p;
    struct {
      ncclPid_t pid;
      uint8_t channelId;
      int peer;
      int nSteps;
      int chunkSize;
      int isSend;
    } proxyOp;
    struct {
      int step;
    } proxyStep;
    struct {
      uint8_t channelId;
      uint64_t pTimer;
    } kernelCh;
    struct {
      int64_t id;
      void* data;
    } netPlugin;
  };
} ncclProfilerEventDescr_v5_t;

typedef struct {
  const char* name;
  // *eActivationMask is one of the process, and read again for each operation.
  ncclResult_t (*init)(void** context, uint64_t commId, int* eActivationMask, const char* commName, int nNodes,
                       int nranks, int rank, ncclDebugLogger_t logfn);
  // Leaves *eHandle null where the event is of no interest.
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v5_t* eDescr);
  ncclResult_t (*stopEvent)(void* eHandle);
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v5_t eState,
                                   ncclProfilerEventStateArgs_v5_t* eStateArgs);
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v5_t;

static_assert(sizeof(ncclProfilerEventDescr_v5_t) == 112 && sizeof(ncclProfiler_v5_t) == 48,
              "ABI of NCCL 2.27 to 2.30");

}  // extern "C"
