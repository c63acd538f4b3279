// result.h: how an outcome of the transport becomes one of NCCL's results, and how a result reads.
//
// Purpose: the one place that maps absl::Status to ncclResult_t.
// Threads: any. Errors: none.
#pragma once

#include "absl/status/status.h"
#include "nccl/net_types.h"

namespace tcpx {

// The table in plugin_api.h says which code means what.
ncclResult_t ResultFromStatus(const absl::Status& status);

// Name and meaning, as in "ncclRemoteError (the peer or the network)". Static text, never null.
const char* ResultText(ncclResult_t result);

}  // namespace tcpx
