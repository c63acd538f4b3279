// rma_v15.h: version 15 of the one-sided plugin interface: NCCL 2.31.2.
//
// Purpose: against v14: options of each operation.
// Units, errors: see rma_v14.h.
// Source:  NCCL 2.31.2; tests/abi checks every offset.
#pragma once

#include "nccl/rma_v14.h"

typedef ncclRmaConfig_v14_t ncclRmaConfig_v15_t;

enum {
  ncclRmaOptFlagsDefault = 0,
  ncclRmaOptFlagsAggregateRequests = 1 << 0,  // more follow: a hint
};

typedef ncclRmaTable_v14<uint32_t> ncclRma_v15_t;

static_assert(sizeof(ncclRma_v15_t) == 168, "ABI of v15");
