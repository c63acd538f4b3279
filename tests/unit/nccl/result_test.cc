#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nccl/shim_common.h"

namespace tcpx {
namespace {

TEST(Result, EveryStatusCodeHasItsResult) {
  struct Row {
    absl::StatusCode code;
    ncclResult_t want;
  };
  const Row rows[] = {
      {absl::StatusCode::kOk, ncclSuccess},
      {absl::StatusCode::kUnavailable, ncclRemoteError},
      {absl::StatusCode::kInvalidArgument, ncclInvalidUsage},
      {absl::StatusCode::kFailedPrecondition, ncclInvalidArgument},
      {absl::StatusCode::kAborted, ncclUnhandledCudaError},
      {absl::StatusCode::kInternal, ncclInternalError},
      {absl::StatusCode::kCancelled, ncclSystemError},
      {absl::StatusCode::kUnknown, ncclSystemError},
      {absl::StatusCode::kDeadlineExceeded, ncclSystemError},
      {absl::StatusCode::kNotFound, ncclSystemError},
      {absl::StatusCode::kAlreadyExists, ncclSystemError},
      {absl::StatusCode::kPermissionDenied, ncclSystemError},
      {absl::StatusCode::kUnauthenticated, ncclSystemError},
      {absl::StatusCode::kResourceExhausted, ncclSystemError},
      {absl::StatusCode::kOutOfRange, ncclSystemError},
      {absl::StatusCode::kUnimplemented, ncclSystemError},
      {absl::StatusCode::kDataLoss, ncclSystemError},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(shim::ResultFromStatus(absl::Status(row.code, "text")), row.want) << absl::StatusCodeToString(row.code);
  }
}

}  // namespace
}  // namespace tcpx
