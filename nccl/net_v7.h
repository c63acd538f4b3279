// net_v7.h: version 7 of the network plugin interface: NCCL 2.19.x, adapted up to 2.30.7.
//
// Purpose: against v6: device handles in connect and accept, getDeviceMr, irecvConsumed, kind of device in the
//          properties.
// Units, errors, source: see net_types.h.
#pragma once

#include "nccl/net_types.h"

// Uninitialised when getProperties gets it.
typedef struct {
  char* name;      // unique per device, lives until the library is unloaded
  char* pciPath;   // null: not on a PCI bus
  uint64_t guid;   // with port: which physical port
  int ptrSupport;  // bits of NCCL_PTR_*
  int speed;       // Mbit/s
  int port;
  float latency;  // microseconds
  int maxComms;
  int maxRecvs;  // largest n of irecv
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;  // NCCL_NET_DEVICE_INVALID_VERSION for a host device
} ncclNetProperties_v7_t;

// Of v7 and v8. The symbols ncclNetPlugin_v7 and ncclNetPlugin_v8 are such tables.
template <class Properties, class RegMrSize>
struct ncclNetTable_v7 {
  const char* name;  // compared with NCCL_NET, letter case ignored
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int* ndev);
  ncclResult_t (*getProperties)(int dev, Properties* props);
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v7_t** sendDevComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v7_t** recvDevComm);
  ncclResult_t (*regMr)(void* comm, void* data, RegMrSize size, int type, void** mhandle);
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                              void** mhandle);  // may be null
  ncclResult_t (*deregMr)(void* comm, void* mhandle);
  ncclResult_t (*isend)(void* sendComm, void* data, int size, int tag, void* mhandle, void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, int* sizes, int* tags, void** mhandles, void** request);
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*closeSend)(void* sendComm);
  ncclResult_t (*closeRecv)(void* recvComm);
  ncclResult_t (*closeListen)(void* listenComm);
  ncclResult_t (*getDeviceMr)(void* comm, void* mhandle, void** dptr_mhandle);  // may be null
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);  // may be null: if not, called after done
};

typedef ncclNetTable_v7<ncclNetProperties_v7_t, int> ncclNet_v7_t;

static_assert(sizeof(ncclNetProperties_v7_t) == 56 && sizeof(ncclNet_v7_t) == 152, "ABI of v7");
