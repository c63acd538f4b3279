// rma_shims.h: the tables of one-sided transfers that NCCL looks up in the library of the net plugin.
//
// Purpose: ncclRmaPlugin_v14 to _v16 over one implementation (TheRma, rma_api.h). They check what NCCL passes, convert
//          it, and hold no logic.
// Threads: constant; no code runs at load time.
// Errors:  ncclInvalidArgument for a missing or senseless argument, otherwise what ResultFromStatus says; init fails
//          where RMA is off, so that NCCL goes on without. Outputs are always written.
// Source:  NCCL 2.30.7 to 2.32.3. regMrSymDmaBuf is null: NCCL calls it where DMA-BUF was announced.
#pragma once

#include "nccl/rma_tables.h"

extern "C" {
#define TCPX_EXPORTED __attribute__((visibility("default")))
extern TCPX_EXPORTED const ncclRma_v14_t ncclRmaPlugin_v14;
extern TCPX_EXPORTED const ncclRma_v15_t ncclRmaPlugin_v15;
extern TCPX_EXPORTED const ncclRma_v16_t ncclRmaPlugin_v16;
#undef TCPX_EXPORTED
}  // extern "C"
