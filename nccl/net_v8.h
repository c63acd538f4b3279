// net_v8.h: version 8 of the network plugin interface: NCCL 2.20.3 to 2.23.4, adapted up to 2.30.7.
//
// Purpose: against v7: regMr takes size_t, regIsGlobal in the middle of the properties.
// Units, errors, source: see net_types.h.
#pragma once

#include "nccl/net_v7.h"

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v8_t;

// Uninitialised when getProperties gets it.
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

typedef ncclNetTable_v7<ncclNetProperties_v8_t, size_t> ncclNet_v8_t;

static_assert(sizeof(ncclNetProperties_v8_t) == 64 && sizeof(ncclNet_v8_t) == 152, "ABI of v8");
