// net_v12.h: version 12 of the network plugin interface: NCCL 2.30.3 to 2.30.7.
//
// Purpose: against v11: up to eight children of a virtual device, rail and plane.
// Units:   sizes are bytes, unless a field says otherwise.
// Errors:  ncclResult_t, see net_types.h.
// Source:  NCCL 2.30.7; tests/abi checks every offset.
#pragma once

#include "nccl/net_v11.h"

extern "C" {

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v12_t;
typedef ncclNetCommConfig_v11_t ncclNetCommConfig_v12_t;
typedef ncclNetCommAttr_v11_t ncclNetCommAttr_v12_t;
typedef ncclNetAttr_v11_t ncclNetAttr_v12_t;

// The children of a virtual device; a physical device is its own only child.
typedef struct {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V12];
} ncclNetVDeviceProps_v12_t;

// Uninitialised when getProperties gets it.
typedef struct {
  char* name;       // unique per device, lives until the library is unloaded
  char* pciPath;    // null: not on a PCI bus
  uint64_t guid;    // with port: which physical port
  int ptrSupport;   // bits of NCCL_PTR_*
  int regIsGlobal;  // 1: a registration serves all comms
  int forceFlush;   // 1: iflush even where the GPU would not need it
  int speed;        // Mbit/s
  int port;
  float latency;  // microseconds
  int maxComms;
  int maxRecvs;  // largest n of irecv
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;  // NCCL_NET_DEVICE_INVALID_VERSION for a host device
  ncclNetVDeviceProps_v12_t vProps;
  size_t maxP2pBytes;       // 1 to NCCL_MAX_NET_SIZE_BYTES
  size_t maxCollBytes;      // the same
  int maxMultiRequestSize;  // 1
  int16_t railId;           // NCCL_NET_ID_UNDEF: not known
  int16_t planeId;          // NCCL_NET_ID_UNDEF: not known
} ncclNetProperties_v12_t;

// The symbol ncclNetPlugin_v12 is one of these.
typedef struct {
  const char* name;  // compared with NCCL_NET, letter case ignored
  ncclResult_t (*init)(void** ctx, uint64_t commId, ncclNetCommConfig_v12_t* config, ncclDebugLogger_t logFunction,
                       ncclProfilerCallback_t profFunction);
  ncclResult_t (*devices)(int* ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t* props);
  ncclResult_t (*listen)(void* ctx, int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(void* ctx, int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v12_t** sendDevComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v12_t** recvDevComm);
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
  ncclResult_t (*makeVDevice)(int* d, ncclNetVDeviceProps_v12_t* props);  // may be null
  ncclResult_t (*finalize)(void* ctx);                                    // must not be null
  ncclResult_t (*setNetAttr)(void* ctx, ncclNetAttr_v12_t* netAttr);      // may be null
} ncclNet_v12_t;

static_assert(sizeof(ncclNetProperties_v12_t) == 128 && sizeof(ncclNet_v12_t) == 176, "ABI of v12");

}  // extern "C"
