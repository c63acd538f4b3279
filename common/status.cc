#include "common/status.h"

#include <errno.h>
#include <string.h>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

constexpr char kErrnoPayload[] = "tcpx/errno";

absl::string_view Advice(int err) {
  switch (err) {
    case EMFILE:
      return "; raise the hard limit of open files (ulimit -Hn, LimitNOFILE=) or use fewer lanes";
    case ENFILE:
      return "; the host's table of open files is full (sysctl fs.file-max)";
    case ENOMEM:
    case ENOBUFS:
      return "; the kernel is short of memory (container limit, net.ipv4.tcp_mem, locked-memory limit)";
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
      return "; the peer ended, or something between reset the connection: the first error in the peer's log says more";
    case ECONNREFUSED:
      return "; nobody listens there: has the peer ended, or does a firewall reject its port?";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "; the peer's host or the path to it is gone: check interface, routes and firewalls";
    default:
      return "";
  }
}

absl::StatusCode CodeOf(int err) {
  if (IsNetworkErrno(err)) return absl::StatusCode::kUnavailable;
  return Advice(err).empty() ? absl::StatusCode::kUnknown : absl::StatusCode::kResourceExhausted;
}

}  // namespace

absl::Status ErrnoStatus(int err, absl::string_view what) {
  absl::Status status(CodeOf(err), absl::StrCat(what, ": ", ErrnoText(err), Advice(err)));
  status.SetPayload(kErrnoPayload, absl::Cord(absl::StrCat(err)));
  return status;
}

int StatusErrno(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrnoPayload);
  int err = 0;
  return payload.has_value() && absl::SimpleAtoi(std::string(*payload), &err) ? err : 0;
}

std::string ErrnoText(int err) {
  char buffer[128] = "";
  return absl::StrCat(strerror_r(err, buffer, sizeof(buffer)), " (", err, ")");  // GNU's, which returns the text
}

bool IsTransientErrno(int err) { return err == EAGAIN || err == EWOULDBLOCK || err == EINTR; }

bool IsSilentErrno(int err) {
  return err == ETIMEDOUT || err == EHOSTUNREACH || err == EHOSTDOWN || err == ENETUNREACH || err == ENETDOWN;
}

bool IsNetworkErrno(int err) {
  return IsSilentErrno(err) || err == ECONNRESET || err == ECONNREFUSED || err == ECONNABORTED || err == EPIPE ||
         err == ENETRESET || err == ENONET || err == ENOTCONN || err == ESHUTDOWN || err == EPROTO;
}

}  // namespace tcpx
