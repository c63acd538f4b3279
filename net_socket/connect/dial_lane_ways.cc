// By which ways an attempt of a lane leaves this host, one behind the other (PathProfile::ways).
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/connect/dial_lane.h"
#include "net_socket/nic/device_route.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/nic/nic_socket.h"
#include "net_socket/nic/shared_subnet.h"

namespace tcpx {
namespace {

// How long a way that is not the last may take: a SYN's first retransmission, which comes after a second, still counts.
constexpr int64_t kWayNs = 1500 * kMillisecond;

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

PathProfile DialLane::MakeProfile() const {
  PathFacts facts = owner_->request().path;
  facts.family = path_.peer.family();
  facts.kind = index_ > 0 ? LaneKind::kBulk : LaneKind::kFirst;
  facts.nic_ties = path_.nic->ties;
  facts.foreign = Foreign();
  facts.same_subnet = InSubnet(path_.nic->interface, path_.peer);
  // Asked only where it counts.
  if (facts.fused && !facts.same_subnet) facts.routed = HasRouteBy(path_.nic->interface, path_.peer);
  return MakePathProfile(owner_->runtime()->options, facts);
}

absl::Status DialLane::Open() {
  SocketAddress peer = path_.peer;
  auto fd = StreamSocket(peer.family());
  if (!fd.ok()) return fd.status();
  fd_ = *std::move(fd);
  ConfigureLane(fd_.get(), profile_, owner_->runtime()->lane_notes);
  absl::Status bound = BindToNic(fd_.get(), *path_.nic, peer, way());
  if (!bound.ok()) return bound;
  if (peer.IsLinkLocal()) peer.set_scope(path_.nic->interface.index);
  if (connect(fd_.get(), peer.sockaddr(), peer.length()) == 0 || errno == EINPROGRESS) return absl::OkStatus();
  no_route_ = errno == ENETUNREACH;
  return Ended(errno);
}

void DialLane::DialInLoop() {
  profile_ = MakeProfile();
  tried_ = 0;
  first_way_ = 0;
  LaneNotes* const notes = owner_->runtime()->lane_notes;
  const std::optional<LeaveBy> known = notes == nullptr ? std::nullopt : notes->KnownWay(WayKey());
  if (known.has_value()) {
    const auto found = std::find(profile_.ways.begin(), profile_.ways.end(), *known);
    if (found != profile_.ways.end()) first_way_ = static_cast<size_t>(found - profile_.ways.begin());
  }
  TryWay();
}

std::string DialLane::WayKey() const {
  return absl::StrCat(path_.nic->interface.name, " ", path_.nic->interface.address.HostString(), " ",
                      path_.peer.HostString());
}

// All ways together have as long as one alone would have.
int64_t DialLane::WayPatienceNs() const {
  if (owner_->tries_on()) return kWayNs;
  const int64_t all_ns = owner_->runtime()->options.hello_timeout_ns;
  const int64_t here = static_cast<int64_t>(profile_.ways.size());
  const int64_t before = turned_ ? here : 0;
  const int64_t ways = here + before + (OtherAddress() != nullptr ? here : 0);
  const int64_t one_ns = std::min(kWayNs, all_ns / ways);
  return before + static_cast<int64_t>(tried_) + 1 < ways ? one_ns : all_ns - (ways - 1) * one_ns;
}

void DialLane::TryWay() {
  MoveTo(DialStep::kDialling);
  no_route_ = false;
  absl::Status opened = Open();
  if (opened.ok()) opened = reactor().WatchInLoop(fd_.get(), EPOLLOUT, this);
  if (!opened.ok()) {
    NextWay(opened);
    return;
  }
  SetDeadline(WayPatienceNs());
}

void DialLane::NextWay(const absl::Status& why) {
  if (!no_route_) owner_->NotRefused();
  if (absl::IsUnavailable(why) && tried_ + 1 < profile_.ways.size()) {
    Drop();
    ++tried_;
    TryWay();
  } else if (!owner_->tries_on() && no_route_ && OtherAddress() == nullptr && (!turned_ || first_had_no_route_)) {
    // Waiting brings no route: said at once, as NCCL's sockets do.
    Drop();
    if (!Detour(why)) GiveUp(why);
  } else {
    Retry(why);
  }
}

void DialLane::WayFound() {
  LaneNotes* const notes = owner_->runtime()->lane_notes;
  if (notes == nullptr || owner_->request().path.same_host) return;
  if (way() != profile_.ways.front()) notes->LearnWay(WayKey(), way());
  const std::string text = absl::StrFormat("lanes through %s (%s) are %s", path_.nic->interface.name,
                                           path_.nic->interface.address.HostString(), WayText(way(), Foreign()));
  if (notes->First(text)) TCPX_INFO("%s; first towards %s", text, path_.peer.HostString());
}

}  // namespace tcpx
