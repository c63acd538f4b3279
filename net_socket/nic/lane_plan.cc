#include "net_socket/nic/lane_plan.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/routing.h"
#include "net_socket/nic/tuning.h"

namespace tcpx {
namespace {

// An interface, and how many lanes it has so far.
struct Load {
  double speed = 0;
  int lanes = 0;

  double need() const { return lanes == 0 ? std::numeric_limits<double>::infinity() : speed / (lanes + 1); }
};

// Which of `allowed` needs a lane most; the first of several.
size_t Neediest(const std::vector<Load>& loads, const std::vector<size_t>& allowed) {
  return *std::max_element(allowed.begin(), allowed.end(),
                           [&](size_t a, size_t b) { return loads[a].need() < loads[b].need(); });
}

std::vector<size_t> Reachable(const Nic& nic, const std::vector<PeerNic>& peers) {
  std::vector<size_t> near, all;
  for (size_t i = 0; i < peers.size(); ++i) {
    all.push_back(i);
    if (InSubnet(nic.interface, peers[i].address)) near.push_back(i);
  }
  return near.empty() ? all : near;
}

// PCI's numbers of vendors.
constexpr int kAmazon = 0x1d0f, kGoogle = 0x1ae0;

int BulkLanesOf(const InterfaceHardware& hardware) {
  const int by_speed = std::clamp((hardware.speed_mbps - 1) / tuning::kLaneMbps + 1, 1, tuning::kLanesBySpeedMax);
  const bool blind = hardware.speed_source == SpeedSource::kAssumed || hardware.speed_source == SpeedSource::kVirtual;
  if (hardware.vendor == kAmazon) return std::max(by_speed, tuning::kAmazonLanes);
  if (hardware.vendor == kGoogle) return std::max(by_speed, tuning::kGoogleLanes);
  return std::max(by_speed, blind ? tuning::kBlindLanes : 1);
}

}  // namespace

LaneCount LanesFor(const Options& options, const PathProfile& path, const std::vector<Nic>& nics, int peer_nics,
                   int64_t lanes_left) {
  if (!path.lanes_by_speed) return {std::max(options.lanes, 1), false};
  int lanes = options.lanes;
  if (lanes == 0) {
    lanes = 1;
    for (const Nic& nic : nics) lanes += BulkLanesOf(nic.hardware);
  }
  const int paths = std::max(static_cast<int>(nics.size()), peer_nics);
  if (paths > 1) lanes = std::max(lanes, 1 + paths);
  lanes = std::min(lanes, kLanesMax);
  if (options.lanes != 0) return {lanes, false};
  const int shared = 1 + LaneBudget::Share(lanes - 1, paths, lanes_left);
  return {shared, shared != lanes};
}

void ChooseAddresses(const Device& device, const std::function<bool(const SocketAddress&)>& misleading,
                     Handle* handle) {
  const auto serves = [&](const SocketAddress& address) {
    return address.valid() && device.HasFamily(address.family()) && !misleading(address);
  };
  const bool other_serves = serves(handle->other_address);
  if (other_serves && serves(handle->address)) return;
  if (other_serves) {
    handle->address = handle->other_address;
    handle->nics = handle->other_nics;
  }
  handle->other_address = SocketAddress();
  handle->other_nics = 0;
}

std::vector<PeerNic> OfFamily(const std::vector<PeerNic>& nics, int family) {
  std::vector<PeerNic> found;
  std::copy_if(nics.begin(), nics.end(), std::back_inserter(found),
               [family](const PeerNic& nic) { return nic.address.family() == family; });
  return found;
}

const Nic& NicTowards(const std::vector<Nic>& nics, const SocketAddress& peer) {
  auto near = std::find_if(nics.begin(), nics.end(), [&](const Nic& nic) { return InSubnet(nic.interface, peer); });
  return near == nics.end() ? nics.front() : *near;
}

std::vector<LanePath> PlanLanes(const std::vector<Nic>& nics, const std::vector<PeerNic>& peers, int bulk_lanes) {
  std::vector<Load> local, remote;
  std::vector<size_t> all;
  for (const Nic& nic : nics) {
    all.push_back(local.size());
    local.push_back({static_cast<double>(nic.hardware.speed_mbps), 0});
  }
  for (const PeerNic& peer : peers) remote.push_back({static_cast<double>(peer.speed_mbps), 0});
  std::vector<LanePath> paths;
  for (int lane = 0; lane < bulk_lanes; ++lane) {
    const size_t from = Neediest(local, all);
    const size_t to = Neediest(remote, Reachable(nics[from], peers));
    ++local[from].lanes;
    ++remote[to].lanes;
    paths.push_back({&nics[from], peers[to].address});
  }
  return paths;
}

absl::Status CheckPeerNics(const SocketAddress& dialled, const std::vector<PeerNic>& peers) {
  for (const PeerNic& peer : peers) {
    const SocketAddress& address = peer.address;
    if (address.family() == dialled.family() && !address.IsAny() && (!address.IsLoopback() || dialled.IsLoopback())) {
      continue;
    }
    return absl::UnavailableError(absl::StrCat("the answer holds the address ", address.ToString(),
                                               ", which is not one of a peer at ", dialled.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace tcpx
