// net_v11.h: version 11 of the network plugin interface: NCCL 2.28.3 to 2.29.7, adapted up to 2.30.7.
//
// Purpose: against v10: a context per communicator with finalize, the configuration in init, setNetAttr.
// Units, errors, source: see net_types.h.
#pragma once

#include "nccl/net_v10.h"

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v11_t;
typedef ncclNetVDeviceProps_v10_t ncclNetVDeviceProps_v11_t;
typedef ncclNetCommConfig_v10_t ncclNetCommConfig_v11_t;

// Hints about one direction. NCCL_NET_ATTR_UNDEF: not known.
typedef struct {
  int32_t maxConcurrentPeers;
  int32_t minConcurrentPeers;
  int32_t maxFlowsPerPeer;
  int32_t minFlowsPerPeer;
} ncclNetCommAttr_v11_t;

// Bit masks of operations, algorithms and protocols; all ones: not known.
typedef struct {
  ncclNetCommAttr_v11_t sendCommAttr;
  ncclNetCommAttr_v11_t recvCommAttr;
  uint32_t op;
  uint32_t algo;
  uint32_t proto;
} ncclNetAttr_v11_t;

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
  ncclNetVDeviceProps_v11_t vProps;
  size_t maxP2pBytes;       // 1 to NCCL_MAX_NET_SIZE_BYTES
  size_t maxCollBytes;      // the same
  int maxMultiRequestSize;  // 1
} ncclNetProperties_v11_t;

// Of v11 and v12. The symbols ncclNetPlugin_v11 and ncclNetPlugin_v12 are such tables.
template <class Properties, class VDeviceProps>
struct ncclNetTable_v11 {
  const char* name;  // compared with NCCL_NET, letter case ignored
  ncclResult_t (*init)(void** ctx, uint64_t commId, ncclNetCommConfig_v11_t* config, ncclDebugLogger_t logFunction,
                       ncclProfilerCallback_t profFunction);
  ncclResult_t (*devices)(int* ndev);
  ncclResult_t (*getProperties)(int dev, Properties* props);
  ncclResult_t (*listen)(void* ctx, int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(void* ctx, int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v11_t** sendDevComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v11_t** recvDevComm);
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
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);  // may be null: if not, called after done
  ncclResult_t (*makeVDevice)(int* d, VDeviceProps* props);             // may be null
  ncclResult_t (*finalize)(void* ctx);                                  // must not be null
  ncclResult_t (*setNetAttr)(void* ctx, ncclNetAttr_v11_t* netAttr);    // may be null
};

typedef ncclNetTable_v11<ncclNetProperties_v11_t, ncclNetVDeviceProps_v11_t> ncclNet_v11_t;

static_assert(sizeof(ncclNetProperties_v11_t) == 112 && sizeof(ncclNet_v11_t) == 176, "ABI of v11");
