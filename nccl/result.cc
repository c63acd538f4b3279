#include "nccl/result.h"

#include <iterator>

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
  constexpr const char* kTexts[] = {"ncclSuccess",
                                    "ncclUnhandledCudaError (a CUDA call failed)",
                                    "ncclSystemError (the local system)",
                                    "ncclInternalError (a broken contract)",
                                    "ncclInvalidArgument (a wrong argument)",
                                    "ncclInvalidUsage (wrong use by the application)",
                                    "ncclRemoteError (the peer or the network)",
                                    "ncclInProgress (not finished)",
                                    "ncclTimeout (out of time)"};
  static_assert(std::size(kTexts) == ncclNumResults);
  return result >= 0 && result < ncclNumResults ? kTexts[result] : "an unknown result";
}

}  // namespace tcpx
