// profiler.h: the events that a network plugin (v10 and up) can report through ncclProfilerCallback_t.
//
// Purpose: event types, the identity of descriptors, and the descriptor of socket traffic that profilers know.
// Threads: the callback may be called from any thread.
// Units:   lengths are bytes.
// Errors:  the callback always reports success. Start must have a parent that is still in flight; a stop or an update
//          of an event that start left null must not be sent.
// Source:  NCCL 2.30.7. Releases 2.26.x know start only and take every other type for a stop.
#pragma once

#include "nccl/net_types.h"

// The callback's `type`.
typedef enum {
  ncclProfilerNetEventStart = 0,
  ncclProfilerNetEventStop = 1,
  ncclProfilerNetEventUpdate = 2,         // 2.27.3
  ncclProfilerNetEventUpdateAndStop = 3,  // 2.27.3
} ncclProfilerNetEventType;

// ncclProfilerNetSockDescr_v1_t::type.
typedef enum {
  ncclProfileSocket = 1 << 0,
} ncclProfilerNetSockDescrType;

// What the callback's extData points to when pluginId is NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER.
typedef struct {
  uint8_t type;
  struct {
    int fd;
    int op;  // 0 send, 1 receive
    size_t length;
  } sock;
} ncclProfilerNetSockDescr_v1_t;

static_assert(sizeof(ncclProfilerNetSockDescr_v1_t) == 24, "ABI of 2.26 to 2.30");

// The callback's pluginId: descriptor version in the low bits, kind of network above.
inline constexpr int NCCL_PROFILER_NET_VER_BITS = 16;
inline constexpr uint32_t NCCL_PROFILER_NET_VER_MASK = 0x0000ffff;
inline constexpr uint32_t NCCL_PROFILER_NET_TYPE_MASK = 0xffff0000;
inline constexpr int NCCL_PROFILER_NET_TYPE_IB = 1 << 16;
inline constexpr int NCCL_PROFILER_NET_TYPE_SOCK = 2 << 16;
inline constexpr int NCCL_PROFILER_NET_IB_VER = 1;
inline constexpr int NCCL_PROFILER_NET_SOCKET_VER = 1;
