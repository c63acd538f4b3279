// net_v10.h: version 10 of the network plugin interface: NCCL 2.26.2 to 2.27.7, adapted up to 2.30.7.
//
// Purpose: against v9: profiler callback, a configuration in connect, profiler handles in isend and irecv.
// Units, errors, source: see net_types.h.
#pragma once

#include "nccl/net_v9.h"

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v10_t;
typedef ncclNetVDeviceProps_v9_t ncclNetVDeviceProps_v10_t;
typedef ncclNetProperties_v9_t ncclNetProperties_v10_t;

// Valid during the call only.
typedef struct {
  int trafficClass;  // NCCL_NET_TRAFFIC_CLASS_UNDEF: not set
} ncclNetCommConfig_v10_t;

// The symbol ncclNetPlugin_v10 is one of these.
typedef struct {
  const char* name;  // compared with NCCL_NET, letter case ignored
  ncclResult_t (*init)(ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction);
  ncclResult_t (*devices)(int* ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v10_t* props);
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** sendComm,
                          ncclNetDeviceHandle_v10_t** sendDevComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v10_t** recvDevComm);
  ncclResult_t (*regMr)(void* comm, void* data, size_t size, int type, void** mhandle);
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                              void** mhandle);  // may be null
  ncclResult_t (*deregMr)(void* comm, void* mhandle);
  ncclResult_t (*isend)(void* sendComm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles,
                        void** request);
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*closeSend)(void* sendComm);
  ncclResult_t (*closeRecv)(void* recvComm);
  ncclResult_t (*closeListen)(void* listenComm);
  ncclResult_t (*getDeviceMr)(void* comm, void* mhandle, void** dptr_mhandle);  // may be null
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);    // may be null: if not, called after done
  ncclResult_t (*makeVDevice)(int* d, ncclNetVDeviceProps_v10_t* props);  // may be null
} ncclNet_v10_t;

static_assert(sizeof(ncclNetProperties_v10_t) == 104 && sizeof(ncclNet_v10_t) == 160, "ABI of v10");
