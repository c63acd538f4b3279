// net_types.h: what every version of NCCL's network plugin interface shares: results, logger, callbacks, constants.
//
// Purpose: the vocabulary of net_tables.h. Names are NCCL's own, in the global namespace, so that a reader can
//          look them up there; the layout is pinned by tests/abi.
// Threads: the logger and the profiler callback may be called from any thread.
// Units:   sizes are bytes, speeds Mbit/s, latencies microseconds; in net_tables.h too, unless a field says
//          otherwise.
// Errors:  functions of the tables return an ncclResult_t.
// Source:  NCCL 2.30.7; a remark says since when where that is not "always". tests/abi checks all values and offsets.
#pragma once

#include <cstddef>
#include <cstdint>

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,  // 2.13.4
  ncclInProgress = 7,   // 2.14.3
  ncclTimeout = 8,      // 2.30.3
  ncclNumResults = 9,
} ncclResult_t;

typedef enum {
  NCCL_NET_DEVICE_HOST = 0,
  NCCL_NET_DEVICE_UNPACK = 1,
  NCCL_NET_DEVICE_GIN_PROXY = 2,  // 2.28.7
  NCCL_NET_DEVICE_GIN_GDAKI = 3,  // 2.28.7
  NCCL_NET_DEVICE_GIN_GPI = 4,    // 2.30.7
} ncclNetDeviceType;

typedef enum {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2,
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5,
} ncclDebugLogLevel;

// Bits of the logger's `flags`. A WARN is shown only if its bits meet the enabled ones, so a WARN uses NCCL_ALL.
typedef enum {
  NCCL_INIT = 0x1,
  NCCL_COLL = 0x2,
  NCCL_P2P = 0x4,
  NCCL_SHM = 0x8,
  NCCL_NET = 0x10,
  NCCL_GRAPH = 0x20,
  NCCL_TUNING = 0x40,
  NCCL_ENV = 0x80,
  NCCL_ALLOC = 0x100,
  NCCL_CALL = 0x200,
  NCCL_PROXY = 0x400,
  NCCL_NVLS = 0x800,
  NCCL_BOOTSTRAP = 0x1000,
  NCCL_REG = 0x2000,
  NCCL_PROFILE = 0x4000,
  NCCL_RAS = 0x8000,
  NCCL_DESTROY = 0x10000,
  NCCL_ALLOC_HOST = 0x20000,
  NCCL_ALL = ~0,
} ncclDebugLogSubSys;

// Adds the prefix and the newline itself. The format is cut at about 1000 bytes, its arguments are not.
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                                  const char* fmt, ...);

// v10 and up, see profiler_tables.h.
typedef ncclResult_t (*ncclProfilerCallback_t)(void** eHandle, int type, void* pHandle, int64_t pluginId,
                                               void* extData);

// Describes a connection that a GPU drives itself. A host device leaves the pointers to it alone.
typedef struct {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  void* handle;
  size_t size;
  int needsProxyProgress;
} ncclNetDeviceHandle_v7_t;

static_assert(sizeof(ncclResult_t) == 4 && sizeof(ncclDebugLogLevel) == 4, "NCCL's enums are ints");
static_assert(sizeof(ncclNetDeviceHandle_v7_t) == 32, "ABI of v7 to v12");

// Bytes of `handle` in listen and connect (v5 and up).
inline constexpr int NCCL_NET_HANDLE_MAXSIZE = 128;
// Requests that NCCL may hold on one comm: releases from 2.19.1 on, and before.
inline constexpr int NCCL_NET_MAX_REQUESTS = 32;
inline constexpr int NCCL_NET_MAX_REQUESTS_V6 = 8;
// Length of vProps.devs.
inline constexpr int NCCL_NET_MAX_DEVS_PER_NIC_V9 = 4;
inline constexpr int NCCL_NET_MAX_DEVS_PER_NIC_V10 = 4;
inline constexpr int NCCL_NET_MAX_DEVS_PER_NIC_V11 = 4;
inline constexpr int NCCL_NET_MAX_DEVS_PER_NIC_V12 = 8;
// Upper bound of maxP2pBytes and maxCollBytes: 1 TiB.
inline constexpr int64_t NCCL_MAX_NET_SIZE_BYTES = int64_t{1} << 40;
// Largest single isend or irecv of NCCL itself, and of its collective networks.
inline constexpr int64_t MAX_NET_SIZE = int64_t{1} << 30;
inline constexpr int64_t MAX_COLLNET_SIZE = int64_t{1} << 29;
// May be in *request when irecv is entered (2.24.3, v9 and up): completion need not be signalled.
inline constexpr int NCCL_NET_OPTIONAL_RECV_COMPLETION = 0x1;
inline constexpr int NCCL_NET_MULTI_REQUEST = 0x2;  // 2.28.3, not used by NCCL
// Kinds of memory: bits of ptrSupport, values of regMr's `type`.
inline constexpr int NCCL_PTR_HOST = 0x1;
inline constexpr int NCCL_PTR_CUDA = 0x2;
inline constexpr int NCCL_PTR_DMABUF = 0x4;  // 2.13.4
// "Not known" or "not set".
inline constexpr int NCCL_NET_TRAFFIC_CLASS_UNDEF = -1;  // 2.26.2
inline constexpr int NCCL_NET_ATTR_UNDEF = -1;           // v11 and up
inline constexpr int NCCL_NET_ID_UNDEF = -1;             // v12
// netDeviceVersion of a host device, and of the one device kind that has another.
inline constexpr int NCCL_NET_DEVICE_INVALID_VERSION = 0x0;
inline constexpr int NCCL_NET_DEVICE_UNPACK_VERSION = 0x7;
