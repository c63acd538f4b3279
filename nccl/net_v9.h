// net_v9.h: version 9 of the network plugin interface: NCCL 2.24.3 to 2.25.1, adapted up to 2.30.7.
//
// Purpose: against v8: isend and irecv take size_t (iflush and test keep int), virtual devices, size limits,
//          forceFlush.
// Units, errors, source: see net_types.h.
#pragma once

#include "nccl/net_types.h"

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v9_t;

// The children of a virtual device; a physical device is its own only child.
typedef struct {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V9];
} ncclNetVDeviceProps_v9_t;

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
  ncclNetVDeviceProps_v9_t vProps;
  size_t maxP2pBytes;   // 1 to NCCL_MAX_NET_SIZE_BYTES
  size_t maxCollBytes;  // the same
} ncclNetProperties_v9_t;

// The symbol ncclNetPlugin_v9 is one of these.
typedef struct {
  const char* name;  // compared with NCCL_NET, letter case ignored
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int* ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v9_t* props);
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v9_t** sendDevComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v9_t** recvDevComm);
  ncclResult_t (*regMr)(void* comm, void* data, size_t size, int type, void** mhandle);
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                              void** mhandle);  // may be null
  ncclResult_t (*deregMr)(void* comm, void* mhandle);
  ncclResult_t (*isend)(void* sendComm, void* data, size_t size, int tag, void* mhandle, void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** request);
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*closeSend)(void* sendComm);
  ncclResult_t (*closeRecv)(void* recvComm);
  ncclResult_t (*closeListen)(void* listenComm);
  ncclResult_t (*getDeviceMr)(void* comm, void* mhandle, void** dptr_mhandle);  // may be null
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);   // may be null: if not, called after done
  ncclResult_t (*makeVDevice)(int* d, ncclNetVDeviceProps_v9_t* props);  // may be null
} ncclNet_v9_t;

static_assert(sizeof(ncclNetProperties_v9_t) == 104 && sizeof(ncclNet_v9_t) == 160, "ABI of v9");
