#include "net_socket/connect/dial_ways.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/log.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/connect/tuning.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/nic/nic_socket.h"
#include "net_socket/nic/routing.h"

namespace tcpx {
namespace {

const char* WayText(LeaveBy way, bool foreign) {
  if (foreign) return "not bound, for it has no address of that family: routes choose address and device";
  switch (way) {
    case LeaveBy::kDevice:
      return "tied to it (SO_BINDTODEVICE)";
    case LeaveBy::kAddress:
      return "bound to its address, and routes choose the device";
    case LeaveBy::kRoute:
      return "not bound, for nothing comes back to its address: routes choose address and device";
  }
  return "";
}

}  // namespace

void DialWays::Begin(const LanePath& path, PathFacts facts) {
  path_ = path;
  same_host_ = facts.same_host;
  facts.family = path.peer.family();
  facts.nic_ties = path.nic->ties;
  facts.foreign = IsForeign(path);
  facts.same_subnet = InSubnet(path.nic->interface, path.peer);
  // Asked only where it counts.
  if (facts.fused && !facts.same_subnet) facts.routed = HasRouteBy(path.nic->interface, path.peer);
  profile_ = MakePathProfile(runtime_->options, facts);
  tried_ = first_ = 0;
  const std::optional<LeaveBy> known =
      runtime_->lane_notes == nullptr ? std::nullopt : runtime_->lane_notes->KnownWay(Key());
  if (!known.has_value()) return;
  const auto found = std::find(profile_.ways.begin(), profile_.ways.end(), *known);
  if (found != profile_.ways.end()) first_ = static_cast<size_t>(found - profile_.ways.begin());
}

absl::StatusOr<OwnedFd> DialWays::Open() {
  no_route_ = false;
  SocketAddress peer = path_.peer;
  auto fd = StreamSocket(peer.family());
  if (!fd.ok()) return fd.status();
  ConfigureLane(fd->get(), profile_, runtime_->lane_notes);
  absl::Status bound = BindToNic(fd->get(), *path_.nic, peer, way());
  if (!bound.ok()) return bound;
  if (peer.IsLinkLocal()) peer.set_scope(path_.nic->interface.index);
  if (connect(fd->get(), peer.sockaddr(), peer.length()) == 0 || errno == EINPROGRESS) return fd;
  no_route_ = errno == ENETUNREACH;
  return Ended(errno);
}

void DialWays::Found() {
  LaneNotes* const notes = runtime_->lane_notes;
  if (notes == nullptr || same_host_) return;
  if (way() != profile_.ways.front()) notes->LearnWay(Key(), way());
  const std::string text = absl::StrFormat("lanes through %s (%s) are %s", path_.nic->interface.name,
                                           path_.nic->interface.address.HostString(), WayText(way(), IsForeign(path_)));
  if (notes->First(text)) TCPX_INFO("%s; first towards %s", text, path_.peer.HostString());
}

absl::Status DialWays::Ended(int err) {
  absl::Status status = ErrnoStatus(err, "connect");
  if (first_error_.empty() && err != ETIMEDOUT) first_error_ = std::string(status.message());
  return status;
}

int64_t DialWays::PatienceNs(int64_t all_ns, bool before, bool after) const {
  const auto here = static_cast<int64_t>(profile_.ways.size());
  const int64_t done = (before ? here : 0) + static_cast<int64_t>(tried_);
  const int64_t ways = here * (1 + (before ? 1 : 0) + (after ? 1 : 0));
  const int64_t one_ns = std::min(tuning::kWayNs, all_ns / ways);
  return done + 1 < ways ? one_ns : all_ns - (ways - 1) * one_ns;
}

std::string DialWays::Key() const {
  return absl::StrCat(path_.nic->interface.name, " ", path_.nic->interface.address.HostString(), " ",
                      path_.peer.HostString());
}

}  // namespace tcpx
