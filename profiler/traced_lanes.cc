#include "profiler/traced_lanes.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/clock.h"

namespace tcpx {
namespace {

// A descriptor number is another socket now, at the latest after this.
constexpr int64_t kLaneKnownNs = kSecond;

std::string Text(const absl::StatusOr<SocketAddress>& address) { return address.ok() ? address->ToString() : "?"; }

}  // namespace

const TracedLanes::Lane& TracedLanes::Of(int fd, int64_t now_ns) {
  if (lanes_.size() >= kLanesMax && !lanes_.contains(fd)) fd = -1;
  Lane& lane = lanes_[fd];
  if (lane.looked_ns != 0 && now_ns - lane.looked_ns < kLaneKnownNs) return lane;
  lane.looked_ns = now_ns;
  std::string addresses = fd < 0 ? "unknown" : absl::StrCat(Text(LocalAddress(fd)), " - ", Text(PeerAddress(fd)));
  if (addresses != lane.addresses) {
    lane.number = ++seen_;
    lane.addresses = std::move(addresses);
  }
  return lane;
}

}  // namespace tcpx
