// net_v12.h: version 12 of the network plugin interface: NCCL 2.30.3 to 2.30.7.
//
// Purpose: against v11: up to eight children of a virtual device, rail and plane.
// Units, errors, source: see net_types.h.
#pragma once

#include "nccl/net_v11.h"

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

typedef ncclNetTable_v11<ncclNetProperties_v12_t, ncclNetVDeviceProps_v12_t> ncclNet_v12_t;

static_assert(sizeof(ncclNetProperties_v12_t) == 128 && sizeof(ncclNet_v12_t) == 176, "ABI of v12");
