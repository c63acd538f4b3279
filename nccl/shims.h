// shims.h: the tables that NCCL looks up by name with dlsym.
//
// Purpose: ncclNetPlugin_vN, N from 6 to 12, are the symbols of the network interface. A release takes the
//          newest one that it knows. They check what NCCL passes, bring it into the widest shape that any version has,
//          and talk to ThePlugin (plugin_api.h).
// Threads: constant; no code runs at load time. The context of v6 to v10 is kept in an atomic.
// Units:   sizes are bytes. A negative int size becomes a huge size_t and is refused.
// Errors:  see shim_common.h. Whatever the outcome, *request, *done, comms, handles and counts are written.
//          regMrDmaBuf, getDeviceMr and irecvConsumed are null in every version. makeVDevice is null in v9 and v10,
//          because NCCL 2.24 to 2.26 loses devices or loops if it is refused there.
// Source:  NCCL 2.13 to 2.30.
#pragma once

#include "nccl/net_tables.h"

// `extern` matters: a const object has internal linkage otherwise, inside extern "C" as well.
extern "C" {
#define TCPX_EXPORTED __attribute__((visibility("default")))
extern TCPX_EXPORTED const ncclNet_v6_t ncclNetPlugin_v6;
extern TCPX_EXPORTED const ncclNet_v7_t ncclNetPlugin_v7;
extern TCPX_EXPORTED const ncclNet_v8_t ncclNetPlugin_v8;
extern TCPX_EXPORTED const ncclNet_v9_t ncclNetPlugin_v9;
extern TCPX_EXPORTED const ncclNet_v10_t ncclNetPlugin_v10;
extern TCPX_EXPORTED const ncclNet_v11_t ncclNetPlugin_v11;
extern TCPX_EXPORTED const ncclNet_v12_t ncclNetPlugin_v12;
#undef TCPX_EXPORTED
}  // extern "C"
