// profiler_tables.h: versions 4 to 6 of NCCL's profiler plugin interface, and the events that a network plugin (v10 and
// up) can report through ncclProfilerCallback_t.
//
// Purpose: the symbol ncclProfiler_vN is an ncclProfiler_vN_t. Names are NCCL's own, in the global namespace; what
//          versions have in common is written once.
// Threads: init and finalize once per communicator; the others, and the callback, by several threads at once.
// Units:   counts are elements, sizes bytes.
// Errors:  ncclResult_t. stopEvent and recordEventState must accept null handles, startEvent null parents. The callback
//          always reports success. Its start must have a parent that is still in flight; a stop or an update of an
//          event that start left null must not be sent. Releases 2.26.x know start only and take every other type for
//          a stop.
// Source:  NCCL 2.30.7; a remark says since which version of the interface. Checked by tests/abi.
#pragma once

#include <sys/types.h>

#include "nccl/net_types.h"

typedef pid_t ncclPid_t;

// eDescr->type, and the bits of the activation mask.
typedef enum {
  ncclProfileGroup = 1 << 0,
  ncclProfileColl = 1 << 1,
  ncclProfileP2p = 1 << 2,
  ncclProfileProxyOp = 1 << 3,
  ncclProfileProxyStep = 1 << 4,
  ncclProfileProxyCtrl = 1 << 5,
  ncclProfileKernelCh = 1 << 6,       // v3
  ncclProfileNetPlugin = 1 << 7,      // v3
  ncclProfileGroupApi = 1 << 8,       // v5
  ncclProfileCollApi = 1 << 9,        // v5
  ncclProfileP2pApi = 1 << 10,        // v5
  ncclProfileKernelLaunch = 1 << 11,  // v5
  ncclProfileCeColl = 1 << 12,        // v6
  ncclProfileCeSync = 1 << 13,        // v6
  ncclProfileCeBatch = 1 << 14,       // v6
} ncclProfilerEventType_t;

// From v4 on; what only older versions have is left out.
typedef enum {
  ncclProfilerProxyStepSendGPUWait = 8,
  ncclProfilerProxyStepSendWait = 9,
  ncclProfilerProxyStepRecvWait = 10,
  ncclProfilerProxyStepRecvFlushWait = 11,
  ncclProfilerProxyStepRecvGPUWait = 12,
  ncclProfilerProxyCtrlIdle = 13,
  ncclProfilerProxyCtrlActive = 14,
  ncclProfilerProxyCtrlSleep = 15,
  ncclProfilerProxyCtrlWakeup = 16,
  ncclProfilerProxyCtrlAppend = 17,
  ncclProfilerProxyCtrlAppendEnd = 18,
  ncclProfilerProxyOpInProgress_v4 = 19,
  ncclProfilerProxyStepSendPeerWait_v4 = 20,
  ncclProfilerNetPluginUpdate = 21,
  ncclProfilerKernelChStop = 22,
  ncclProfilerGroupStartApiStop = 23,  // v5
  ncclProfilerGroupEndApiStart = 24,   // v5
  ncclProfilerCeCollStart = 25,        // v6
  ncclProfilerCeCollComplete = 26,     // v6
  ncclProfilerCeSyncStart = 27,        // v6
  ncclProfilerCeSyncComplete = 28,     // v6
  ncclProfilerCeBatchStart = 29,       // v6
  ncclProfilerCeBatchComplete = 30,    // v6
} ncclProfilerEventState_t;

typedef ncclProfilerEventState_t ncclProfilerEventState_v4_t;
typedef ncclProfilerEventState_t ncclProfilerEventState_v5_t;
typedef ncclProfilerEventState_t ncclProfilerEventState_v6_t;

// With recordEventState; may be null.
typedef union {
  struct {
    size_t transSize;  // bytes
  } proxyStep;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
  struct {
    void* data;
  } netPlugin;
  struct {
    uint64_t pTimer;  // the GPU's clock
  } kernelCh;
} ncclProfilerEventStateArgs_v4_t;

typedef ncclProfilerEventStateArgs_v4_t ncclProfilerEventStateArgs_v5_t;
typedef ncclProfilerEventStateArgs_v5_t ncclProfilerEventStateArgs_v6_t;

// Parts of the descriptors, from v4 on.
typedef struct {
  ncclPid_t pid;
  uint8_t channelId;
  int peer;
  int nSteps;
  int chunkSize;
  int isSend;
} ncclProfilerProxyOp_t;

typedef struct {
  int step;
} ncclProfilerProxyStep_t;

typedef struct {
  uint8_t channelId;
  uint64_t pTimer;
} ncclProfilerKernelCh_t;

typedef struct {
  int64_t id;
  void* data;
} ncclProfilerNetPlugin_t;

// Version 4: NCCL 2.27.x, and what 2.28 and later fall back to. Groups, collectives, proxy operations and their steps,
// network events.

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
} ncclProfilerColl_v4_t;

typedef struct {
  const char* func;
  void* buff;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t nChannels;
} ncclProfilerP2p_v4_t;

// `type` says which member of the union is set, in every version. Texts are NCCL's own and live on.
typedef struct {
  uint8_t type;
  void* parentObj;
  int rank;
  union {
    ncclProfilerColl_v4_t coll;
    ncclProfilerP2p_v4_t p2p;
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

// Version 5: NCCL 2.28.x. Against v4: a 64-bit type, the calls of the application (groupApi, collApi, p2pApi,
// kernelLaunch), and parentGroup. Version 6: NCCL 2.29.2 to 2.30.7. Against v5: collectives of the copy engines
// (ceColl, ceCollSync, ceCollBatch), which fit into the union.

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

struct ncclProfilerColl_v5_t : ncclProfilerColl_v4_t {
  void* parentGroup;
};

struct ncclProfilerP2p_v5_t : ncclProfilerP2p_v4_t {
  void* parentGroup;
};

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
    } ceColl;  // v6
    struct {
      bool isComplete;
      int nRanks;
    } ceCollSync;  // v6
    struct {
      int numOps;
      size_t totalBytes;
      bool useIntraSync;
    } ceCollBatch;  // v6
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

typedef ncclProfilerEventDescr_v5_t ncclProfilerEventDescr_v6_t;
typedef ncclProfiler_v5_t ncclProfiler_v6_t;

static_assert(sizeof(ncclProfilerEventDescr_v4_t) == 104 && sizeof(ncclProfiler_v4_t) == 48, "ABI of v4");
static_assert(sizeof(ncclProfilerEventDescr_v5_t) == 112 && sizeof(ncclProfiler_v5_t) == 48, "ABI of v5 and v6");

// Events of a network plugin.

// The callback's `type`.
typedef enum {
  ncclProfilerNetEventStart = 0,
  ncclProfilerNetEventStop = 1,
  ncclProfilerNetEventUpdate = 2,         // 2.27.3
  ncclProfilerNetEventUpdateAndStop = 3,  // 2.27.3
} ncclProfilerNetEventType;

// ncclProfilerNetSockDescr_v1_t::type.
typedef enum {
  ncclProfileSocket = 1 << 0,
} ncclProfilerNetSockDescrType;

// What the callback's extData points to when pluginId is NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER.
typedef struct {
  uint8_t type;
  struct {
    int fd;
    int op;  // 0 send, 1 receive
    size_t length;
  } sock;
} ncclProfilerNetSockDescr_v1_t;

static_assert(sizeof(ncclProfilerNetSockDescr_v1_t) == 24, "ABI of 2.26 to 2.30");

// The callback's pluginId: descriptor version in the low bits, kind of network above.
inline constexpr int NCCL_PROFILER_NET_VER_BITS = 16;
inline constexpr uint32_t NCCL_PROFILER_NET_VER_MASK = 0x0000ffff;
inline constexpr uint32_t NCCL_PROFILER_NET_TYPE_MASK = 0xffff0000;
inline constexpr int NCCL_PROFILER_NET_TYPE_IB = 1 << 16;
inline constexpr int NCCL_PROFILER_NET_TYPE_SOCK = 2 << 16;
inline constexpr int NCCL_PROFILER_NET_IB_VER = 1;
inline constexpr int NCCL_PROFILER_NET_SOCKET_VER = 1;
