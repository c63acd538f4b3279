// net_tables.h: versions 6 to 12 of the network plugin interface, and the number of a table's type.
//
// Purpose: the symbol ncclNetPlugin_vN is an ncclNet_vN_t. What a version has in common with an older one is written
//          once: as a template, or as a base, whose members come first. tests/abi checks the offset of every member.
//          kNetVersion lets one template serve all tables: `if constexpr (kNetVersion<Table> >= 9)`.
// Units, errors, source: see net_types.h.
#pragma once

#include "nccl/net_types.h"

// Version 6: NCCL 2.13.4 to 2.18.6, adapted up to 2.30.7. The oldest that this plugin exports. All sizes are int.

// Uninitialised when getProperties gets it, in every version.
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

// Version 7: NCCL 2.19.x, adapted up to 2.30.7. Against v6: device handles in connect and accept, getDeviceMr,
// irecvConsumed, kind of device in the properties.

struct ncclNetProperties_v7_t : ncclNetProperties_v6_t {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;  // NCCL_NET_DEVICE_INVALID_VERSION for a host device
};

// Of v7 and v8, and the beginning of v9.
template <class Properties, class RegMrSize, class Size>
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
  ncclResult_t (*isend)(void* sendComm, void* data, Size size, int tag, void* mhandle, void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, Size* sizes, int* tags, void** mhandles, void** request);
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*closeSend)(void* sendComm);
  ncclResult_t (*closeRecv)(void* recvComm);
  ncclResult_t (*closeListen)(void* listenComm);
  ncclResult_t (*getDeviceMr)(void* comm, void* mhandle, void** dptr_mhandle);  // may be null
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);  // may be null: if not, called after done
};

typedef ncclNetTable_v7<ncclNetProperties_v7_t, int, int> ncclNet_v7_t;

// Version 8: NCCL 2.20.3 to 2.23.4, adapted up to 2.30.7. Against v7: regMr takes size_t, regIsGlobal in the middle of
// the properties.

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v8_t;

typedef struct {
  char* name;       // unique per device, lives until the library is unloaded
  char* pciPath;    // null: not on a PCI bus
  uint64_t guid;    // with port: which physical port
  int ptrSupport;   // bits of NCCL_PTR_*
  int regIsGlobal;  // 1: a registration serves all comms
  int speed;        // Mbit/s
  int port;
  float latency;  // microseconds
  int maxComms;
  int maxRecvs;  // largest n of irecv
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;  // NCCL_NET_DEVICE_INVALID_VERSION for a host device
} ncclNetProperties_v8_t;

typedef ncclNetTable_v7<ncclNetProperties_v8_t, size_t, int> ncclNet_v8_t;

// Version 9: NCCL 2.24.3 to 2.25.1, adapted up to 2.30.7. Against v8: isend and irecv take size_t (iflush and test keep
// int), virtual devices, size limits, forceFlush.

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v9_t;

// The children of a virtual device; a physical device is its own only child.
template <int kDevsMax>
struct ncclNetVDeviceProps {
  int ndevs;
  int devs[kDevsMax];
};

typedef ncclNetVDeviceProps<NCCL_NET_MAX_DEVS_PER_NIC_V9> ncclNetVDeviceProps_v9_t;

// Of v9 and v10, and the beginning of v11's and v12's.
template <class VDeviceProps>
struct ncclNetPropertiesBase_v9 {
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
  VDeviceProps vProps;
  size_t maxP2pBytes;   // 1 to NCCL_MAX_NET_SIZE_BYTES
  size_t maxCollBytes;  // the same
};

typedef ncclNetPropertiesBase_v9<ncclNetVDeviceProps_v9_t> ncclNetProperties_v9_t;

struct ncclNet_v9_t : ncclNetTable_v7<ncclNetProperties_v9_t, size_t, size_t> {
  ncclResult_t (*makeVDevice)(int* d, ncclNetVDeviceProps_v9_t* props);  // may be null
};

// Version 10: NCCL 2.26.2 to 2.27.7, adapted up to 2.30.7. Against v9: profiler callback, a configuration in connect,
// profiler handles in isend and irecv.

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v10_t;
typedef ncclNetVDeviceProps_v9_t ncclNetVDeviceProps_v10_t;
typedef ncclNetProperties_v9_t ncclNetProperties_v10_t;

// Valid during the call only.
typedef struct {
  int trafficClass;  // NCCL_NET_TRAFFIC_CLASS_UNDEF: not set
} ncclNetCommConfig_v10_t;

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

// Version 11: NCCL 2.28.3 to 2.29.7, adapted up to 2.30.7. Against v10: a context per communicator with finalize, the
// configuration in init, setNetAttr.

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

struct ncclNetProperties_v11_t : ncclNetProperties_v9_t {
  int maxMultiRequestSize;  // 1
};

// Of v11 and v12.
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

// Version 12: NCCL 2.30.3 to 2.30.7. Against v11: up to eight children of a virtual device, rail and plane.

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v12_t;
typedef ncclNetCommConfig_v11_t ncclNetCommConfig_v12_t;
typedef ncclNetCommAttr_v11_t ncclNetCommAttr_v12_t;
typedef ncclNetAttr_v11_t ncclNetAttr_v12_t;

typedef ncclNetVDeviceProps<NCCL_NET_MAX_DEVS_PER_NIC_V12> ncclNetVDeviceProps_v12_t;

struct ncclNetProperties_v12_t : ncclNetPropertiesBase_v9<ncclNetVDeviceProps_v12_t> {
  int maxMultiRequestSize;  // 1
  int16_t railId;           // NCCL_NET_ID_UNDEF: not known
  int16_t planeId;          // NCCL_NET_ID_UNDEF: not known
};

typedef ncclNetTable_v11<ncclNetProperties_v12_t, ncclNetVDeviceProps_v12_t> ncclNet_v12_t;

static_assert(sizeof(ncclNetProperties_v6_t) == 48 && sizeof(ncclNet_v6_t) == 136, "ABI of v6");
static_assert(sizeof(ncclNetProperties_v7_t) == 56 && sizeof(ncclNet_v7_t) == 152, "ABI of v7");
static_assert(sizeof(ncclNetProperties_v8_t) == 64 && sizeof(ncclNet_v8_t) == 152, "ABI of v8");
static_assert(sizeof(ncclNetProperties_v9_t) == 104 && sizeof(ncclNet_v9_t) == 160, "ABI of v9");
static_assert(sizeof(ncclNetProperties_v10_t) == 104 && sizeof(ncclNet_v10_t) == 160, "ABI of v10");
static_assert(sizeof(ncclNetProperties_v11_t) == 112 && sizeof(ncclNet_v11_t) == 176, "ABI of v11");
static_assert(sizeof(ncclNetProperties_v12_t) == 128 && sizeof(ncclNet_v12_t) == 176, "ABI of v12");

namespace tcpx {

inline constexpr int kOldestNetVersion = 6;
inline constexpr int kNewestNetVersion = 12;

template <class Table>
inline constexpr int kNetVersion = 0;
template <>
inline constexpr int kNetVersion<ncclNet_v6_t> = 6;
template <>
inline constexpr int kNetVersion<ncclNet_v7_t> = 7;
template <>
inline constexpr int kNetVersion<ncclNet_v8_t> = 8;
template <>
inline constexpr int kNetVersion<ncclNet_v9_t> = 9;
template <>
inline constexpr int kNetVersion<ncclNet_v10_t> = 10;
template <>
inline constexpr int kNetVersion<ncclNet_v11_t> = 11;
template <>
inline constexpr int kNetVersion<ncclNet_v12_t> = 12;

}  // namespace tcpx
