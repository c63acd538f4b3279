#include "net_socket/nic/path_profile.h"

namespace tcpx {
namespace {

// The path to an address of this host loses nothing and has no queue to avoid: pacing, as bbr does it, only delays
// there (docs/experiments.md). Built into every kernel and allowed to everyone (tcp_cong.c, Linux 6.18).
constexpr char kSameHostCongestion[] = "reno";

void ChooseCongestion(const Options& options, bool same_host, PathProfile* profile) {
  profile->congestion_asked = !options.congestion.empty();
  if (profile->congestion_asked) {
    profile->congestion = options.congestion;
  } else if (same_host) {
    profile->congestion = kSameHostCongestion;
  }
  profile->pacing = options.pacing_mbps > 0 ? static_cast<uint64_t>(options.pacing_mbps) * 125000 : 0;
}

void ChooseBuffers(const Options& options, const PathFacts& facts, PathProfile* profile) {
  profile->send_buffer = {options.sndbuf, options.sndbuf >= 0};
  // bbr loses by a bound.
  const bool paces = options.congestion.compare(0, 3, "bbr") == 0;
  profile->bounds_receive_buffer = options.rcvbuf < 0 && facts.same_host && !paces;
  profile->receive_buffer = {options.rcvbuf, options.rcvbuf >= 0};
  if (profile->bounds_receive_buffer) profile->receive_buffer.bytes = kSameHostBytes;
  // A buffer that the user made small may hold less than the mark.
  profile->raises_low_water = options.rcvbuf < 0 && facts.same_host;
}

// Tied to a device, a socket hears nothing that comes in by another one, and has no other's routes. So only where the
// routes would not choose the device: in a subnet that several share, and from a fused device through a router that its
// interface has a route to.
std::vector<LeaveBy> ChooseWays(const PathFacts& facts) {
  if (facts.foreign) return {LeaveBy::kRoute};
  const bool tied = facts.same_subnet ? facts.nic_ties : facts.fused && facts.routed;
  if (facts.same_host || !tied) return {LeaveBy::kAddress, LeaveBy::kRoute};
  return {LeaveBy::kDevice, LeaveBy::kAddress, LeaveBy::kRoute};
}

}  // namespace

PathProfile MakePathProfile(const Options& options, const PathFacts& facts) {
  PathProfile profile;
  profile.family = facts.family;
  profile.traffic_class = facts.traffic_class;
  ChooseCongestion(options, facts.same_host, &profile);
  ChooseBuffers(options, facts, &profile);
  // No flow of its own on the same host: memory is the limit. Between hosts the rate alone says how much a lane holds:
  // the fixed mark is 2 ms of a flow of 1 Gbit/s.
  profile.paced_by_rate = !facts.same_host;
  if (facts.kind == LaneKind::kBulk && facts.same_host) profile.unsent_mark = kBulkUnsentBytes;
  profile.ways = ChooseWays(facts);
  profile.lanes_by_speed = !facts.same_host;
  profile.pilots_lanes = !facts.same_host && !facts.fused && options.lanes == 0 && options.steer != Switch::kOff;
  profile.shuffles_lanes = options.shuffle_lanes;
  // There the kernel copies.
  profile.zero_copy = options.zerocopy == Switch::kAuto && facts.same_host ? Switch::kOff : options.zerocopy;
  profile.delays_acks = facts.same_host;
  profile.pads_lone_frames = facts.same_host;
  // Over a real network nothing was gained by putting off the acknowledgements of longer messages.
  profile.times_long_messages = facts.same_host;
  return profile;
}

}  // namespace tcpx
