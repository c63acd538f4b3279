#include "net_socket/rma/group_peers.h"

#include "absl/strings/str_format.h"

namespace tcpx {

void GroupPeers::Closed(uint32_t rank, bool orderly, int64_t now_ns) {
  gone_[rank] = true;
  First* const first = orderly ? &orderly_ : &aborted_;
  if (first->at_ns == 0) *first = {rank, now_ns};
}

absl::Status GroupPeers::Check(int64_t now_ns) const {
  if (aborted_.at_ns != 0 && now_ns - aborted_.at_ns >= kGraceNs) {
    return absl::UnavailableError(
        absl::StrFormat("rank %u has ended its one-sided transfers with windows open, as ncclCommAbort does, and "
                        "windows are open here",
                        aborted_.rank));
  }
  if (orderly_.at_ns != 0 && now_ns - orderly_.at_ns >= peer_timeout_ns_) {
    return absl::UnavailableError(
        absl::StrFormat("rank %u has ended its one-sided transfers, and windows are open here still after %.1f s "
                        "(TCPX_PEER_TIMEOUT)",
                        orderly_.rank, static_cast<double>(peer_timeout_ns_) * 1e-9));
  }
  return absl::OkStatus();
}

}  // namespace tcpx
