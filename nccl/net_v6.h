// net_v6.h: version 6 of the network plugin interface: NCCL 2.13.4 to 2.18.6, adapted up to 2.30.7.
//
// Purpose: the oldest version that this plugin exports. All sizes are int.
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
} ncclNetProperties_v6_t;

// The symbol ncclNetPlugin_v6 is one of these.
typedef struct {
  const char* name;  // compared with NCCL_NET, letter case ignored
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int* ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v6_t* props);
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(int dev, void* handle, void** sendComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm);
  ncclResult_t (*regMr)(void* comm, void* data, int size, int type, void** mhandle);
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
} ncclNet_v6_t;

static_assert(sizeof(ncclNetProperties_v6_t) == 48 && sizeof(ncclNet_v6_t) == 136, "ABI of v6");
