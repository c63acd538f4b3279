#include "nccl/result.h"

#include "absl/status/status.h"

namespace tcpx {

ncclResult_t ResultFromStatus(const absl::Status& status) {
  if (status.ok()) return ncclSuccess;  // Nearly all calls; cheaper than asking for the code.
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return ncclRemoteError;
    case absl::StatusCode::kInvalidArgument:
      return ncclInvalidUsage;
    case absl::StatusCode::kFailedPrecondition:
      return ncclInvalidArgument;
    case absl::StatusCode::kAborted:
      return ncclUnhandledCudaError;
    case absl::StatusCode::kInternal:
      return ncclInternalError;
    default:
      return ncclSystemError;
  }
}

const char* ResultText(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "ncclSuccess";
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError (a CUDA call failed)";
    case ncclSystemError:
      return "ncclSystemError (the local system)";
    case ncclInternalError:
      return "ncclInternalError (a broken contract)";
    case ncclInvalidArgument:
      return "ncclInvalidArgument (a wrong argument)";
    case ncclInvalidUsage:
      return "ncclInvalidUsage (wrong use by the application)";
    case ncclRemoteError:
      return "ncclRemoteError (the peer or the network)";
    case ncclInProgress:
      return "ncclInProgress (not finished)";
    case ncclTimeout:
      return "ncclTimeout (out of time)";
    default:
      return "an unknown result";
  }
}

}  // namespace tcpx
