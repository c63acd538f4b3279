// profiler_types.h: what every version of NCCL's profiler plugin interface shares: events and their states.
//
// Purpose: the vocabulary of profiler_v4.h to profiler_v6.h. Names are NCCL's own, in the global namespace.
// Threads: init and finalize once per communicator; the others by several threads at once.
// Units:   counts are elements, sizes bytes.
// Errors:  ncclResult_t. stopEvent and recordEventState must accept null handles, startEvent null parents.
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
