#include "common/status.h"

#include <errno.h>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

struct ErrnoCase {
  int err;
  absl::StatusCode want;
  const char* text;
};

TEST(StatusTest, TheCodeSaysWhoseFaultItWas) {
  const ErrnoCase cases[] = {
      {ECONNRESET, absl::StatusCode::kUnavailable, "Connection reset by peer (104)"},
      {EPIPE, absl::StatusCode::kUnavailable, "Broken pipe (32); the peer ended"},
      {ETIMEDOUT, absl::StatusCode::kUnavailable, "Connection timed out (110); the peer's host"},
      {EHOSTUNREACH, absl::StatusCode::kUnavailable, "No route to host"},
      {ENETUNREACH, absl::StatusCode::kUnavailable, "Network is unreachable"},
      {ECONNREFUSED, absl::StatusCode::kUnavailable, "Connection refused"},
      {ECONNABORTED, absl::StatusCode::kUnavailable, "connection abort"},
      {ENETDOWN, absl::StatusCode::kUnavailable, "Network is down"},
      {EHOSTDOWN, absl::StatusCode::kUnavailable, "Host is down"},
      {EMFILE, absl::StatusCode::kResourceExhausted, "ulimit -Hn"},
      {ENFILE, absl::StatusCode::kResourceExhausted, "fs.file-max"},
      {ENOMEM, absl::StatusCode::kResourceExhausted, "memory"},
      {ENOBUFS, absl::StatusCode::kResourceExhausted, "memory"},
      {EINVAL, absl::StatusCode::kUnknown, "Invalid argument (22)"},
      {EBADF, absl::StatusCode::kUnknown, "Bad file descriptor"},
      {0, absl::StatusCode::kUnknown, "(0)"},
      {99999, absl::StatusCode::kUnknown, "(99999)"},
  };
  for (const ErrnoCase& one : cases) {
    const absl::Status status = ErrnoStatus(one.err, "lane 3");
    EXPECT_EQ(status.code(), one.want) << one.err;
    EXPECT_TRUE(absl::StartsWith(status.message(), "lane 3: ")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), one.text)) << status;
  }
}

TEST(StatusTest, NetworkErrnosAreThoseOfUnavailable) {
  for (int err = 0; err < 200; ++err) {
    EXPECT_EQ(IsNetworkErrno(err), ErrnoStatus(err, "x").code() == absl::StatusCode::kUnavailable) << err;
  }
}

}  // namespace
}  // namespace tcpx
