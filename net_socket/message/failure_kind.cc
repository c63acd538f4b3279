#include "net_socket/message/failure_kind.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

constexpr char kPayload[] = "tcpx/failure";

}  // namespace

absl::Status FailureOf(FailureKind kind, absl::string_view text) {
  absl::Status status = absl::UnavailableError(text);
  const char value = static_cast<char>(kind);
  status.SetPayload(kPayload, absl::Cord(absl::string_view(&value, 1)));
  return status;
}

FailureKind KindOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  return payload.has_value() ? static_cast<FailureKind>((*payload)[0]) : FailureKind::kBareEnd;
}

absl::Status GarbageError(absl::string_view wrong) {
  return FailureOf(FailureKind::kGarbage, absl::StrCat("the peer sent what is not tcpx: ", wrong));
}

absl::Status PeerError(absl::string_view cause) {
  return FailureOf(FailureKind::kReported, absl::StrCat("the peer failed", cause.empty() ? "" : ": ", cause));
}

}  // namespace tcpx
