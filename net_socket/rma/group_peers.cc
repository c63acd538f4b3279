#include "net_socket/rma/group_peers.h"

#include <string>

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"

namespace tcpx {

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

void RmaStrangers::Closed(uint32_t rank, const absl::Status& why) {
  std::string more;
  if (!lines_.May(MonotonicNanos(), &more)) return;
  TCPX_INFO("one-sided transfers of rank %u: a connection that had not said its rank was closed: %s%s", rank,
            why.ok() ? "it said nothing within TCPX_HELLO_TIMEOUT" : std::string(why.message()), more);
}

}  // namespace tcpx
