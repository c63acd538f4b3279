#include "net_socket/plugin/dial_plan.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/this_host.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/send/busy_lanes.h"

namespace tcpx {
namespace {

// Where thousands of lanes are open, which may be a surprise.
void LogShare(const DialRequest& request, const LaneCount& count) {
  if (!count.shared) return;
  TCPX_INFO("comm %x connect: the process has most of its lanes open already: %d for this one; TCPX_LANES changes it",
            request.communicator->id, request.lanes);
}

// Where lanes come and go, with those that the latest connection to that peer has found.
void TakeLanes(const Options& options, const Runtime& runtime, DialRequest* request) {
  LaneBudget* const budget = runtime.lane_budget.get();
  const PathProfile path = MakePathProfile(options, request->path);
  LaneCount count = LanesFor(options, path, request->device->NicsFor(request->handle.address.family()),
                             request->handle.nics, budget->left());
  const int known = path.pilots_lanes && options.heal && runtime.lane_notes != nullptr && !count.shared
                        ? runtime.lane_notes->KnownLanes(request->device->index, request->handle.address)
                        : 0;
  if (known > 0) {
    const int busy = runtime.busy_lanes->Count(MonotonicNanos());
    count.lanes = 1 + LaneBudget::Remembered(known, count.lanes - 1, budget->left(), busy);
  }
  request->lanes = count.lanes;
  const bool may_pilot = path.pilots_lanes || path.shuffles_lanes;
  request->piloted = options.heal && may_pilot && LanesMayBePiloted(count.lanes);
  request->taken_lanes = budget->Take(count.lanes - 1);
  LogShare(*request, count);
}

}  // namespace

void PlanDial(const Options& options, Transport* transport, uint64_t host_mark, DialRequest* request) {
  const bool elsewhere = host_mark != 0 && host_mark != HostMark();
  ChooseAddresses(
      *request->device, [&](const SocketAddress& at) { return elsewhere && transport->IsLocal(at); }, &request->handle);
  request->path.same_host = transport->IsLocal(request->handle.address);
  request->path.fused = request->device->fused();
  request->peer_is_elsewhere = request->path.same_host && elsewhere;
  TakeLanes(options, transport->runtime(), request);
}

}  // namespace tcpx
