#include "net_socket/plugin/transport.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/counted.h"
#include "common/fd.h"
#include "common/interfaces.h"
#include "common/log.h"
#include "common/this_host.h"
#include "net_socket/engine/engine.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/send/busy_lanes.h"
#include "net_socket/stats/hub.h"

namespace tcpx {

// How long a progress thread looks for more work before it sleeps, at most.
constexpr int64_t kSpinNs = 50 * kMicrosecond;

absl::StatusOr<std::unique_ptr<Transport>> Transport::Start(const Options& options, const ThreadPlan& plan,
                                                            const Secret* secret, LaneNotes* notes,
                                                            std::unique_ptr<GpuHub> gpu) {
  std::unique_ptr<Transport> transport(new Transport(options, secret));
  transport->runtime_.lane_notes = notes;
  transport->runtime_.gpu = std::move(gpu);
  const absl::Status limit = RaiseDescriptorLimit();
  if (!limit.ok()) TCPX_INFO("%s", limit.message());
  transport->runtime_.lane_budget->SetDescriptors(DescriptorLimit());
  transport->local_addresses_ = LocalAddresses();
  absl::Status status = transport->runtime_.reactor.Start();
  if (status.ok()) status = transport->StartPool(plan);
  if (!status.ok()) return status;
  return transport;
}

absl::Status Transport::StartPool(const ThreadPlan& plan) {
  const Options& options = runtime_.options;
  if (plan.caller_driven()) {
    // A user who has set TCPX_THREADS=0 knows.
    if (options.engine != EngineChoice::kAuto && options.threads != 0) {
      TCPX_WARN("TCPX_ENGINE has no effect: there are no progress threads (%s); TCPX_THREADS sets their number",
                plan.reason);
    }
    TCPX_INFO("mode caller-driven (%s): NCCL's own thread moves the bytes; engine none", plan.reason);
    return absl::OkStatus();
  }
  if (!plan.warning.empty()) TCPX_WARN("%s", plan.warning);
  std::string reason;
  const EngineChoice engine = ProbeEngine(options.engine, &reason);
  if (options.engine == EngineChoice::kIoUring && engine != options.engine) {
    TCPX_WARN("TCPX_ENGINE=io_uring is not available here: epoll is used instead (%s)", reason);
  }
  const EngineChoice wanted = engine == EngineChoice::kEpoll ? engine : options.engine;
  runtime_.pool = std::make_unique<ProgressPool>();
  absl::Status status = runtime_.pool->Start(wanted, plan.threads, plan.places, kSpinNs);
  if (!status.ok()) {
    runtime_.pool.reset();
    TCPX_WARN("%s; mode caller-driven instead: NCCL's own thread moves the bytes", std::string(status.message()));
    return absl::OkStatus();
  }
  TCPX_INFO("mode pool of %s (%s); engine %s (%s)", Counted(runtime_.pool->threads(), "progress thread"), plan.reason,
            engine == EngineChoice::kIoUring ? "io_uring" : "epoll", reason);
  return absl::OkStatus();
}

Transport::~Transport() {
  Retire();
  Join();
}

bool Transport::IsLocal(const SocketAddress& address) const {
  return std::any_of(local_addresses_.begin(), local_addresses_.end(),
                     [&](const SocketAddress& local) { return local.SameHostAddress(address); });
}

void Transport::PlanDial(uint64_t host_mark, DialRequest* request) {
  const bool elsewhere = host_mark != 0 && host_mark != HostMark();
  ChooseAddresses(
      *request->device, [&](const SocketAddress& at) { return elsewhere && IsLocal(at); }, &request->handle);
  request->path.same_host = IsLocal(request->handle.address);
  request->path.fused = request->device->fused();
  request->peer_is_elsewhere = request->path.same_host && elsewhere;
  TakeLanes(request);
}

// Where lanes come and go, with those that the latest connection to that peer has found.
void Transport::TakeLanes(DialRequest* request) {
  const Options& options = runtime_.options;
  LaneBudget* const budget = runtime_.lane_budget.get();
  const PathProfile path = MakePathProfile(options, request->path);
  LaneCount count = LanesFor(options, path, request->device->NicsFor(request->handle.address.family()),
                             request->handle.nics, budget->left());
  const int known = path.pilots_lanes && options.heal && runtime_.lane_notes != nullptr && !count.shared
                        ? runtime_.lane_notes->KnownLanes(request->device->index, request->handle.address)
                        : 0;
  if (known > 0) {
    const int busy = runtime_.busy_lanes->Count(MonotonicNanos());
    count.lanes = 1 + LaneBudget::Remembered(known, count.lanes - 1, budget->left(), busy);
  }
  request->lanes = count.lanes;
  const bool may_pilot = path.pilots_lanes || path.shuffles_lanes;
  request->piloted = options.heal && may_pilot && LanesMayBePiloted(count.lanes);
  request->taken_lanes = budget->Take(count.lanes - 1);
  if (!count.shared) return;
  // Where thousands of lanes are open, which may be a surprise.
  TCPX_INFO("comm %x connect: the process has most of its lanes open already: %d for this one; TCPX_LANES changes it",
            request->communicator->id, request->lanes);
}

void Transport::Serve(StatsHub* stats) {
  runtime_.stats = stats;
  serves_stats_ = true;
  stats->Start();
}

void Transport::LeaveStats() {
  if (std::exchange(serves_stats_, false)) runtime_.stats->Stop();
}

void Transport::Retire() {
  LeaveStats();
  dialler_.Close();
  acceptor_.Close();
  runtime_.reactor.RunSync([this] { runtime_.health.CloseInLoop(); });
  if (runtime_.pool != nullptr) runtime_.pool->Stop();
  runtime_.reactor.RequestStop();
}

void Transport::Abandon() {
  LeaveStats();
  if (runtime_.pool != nullptr) runtime_.pool->Stop();
  runtime_.reactor.RequestStop();
  Join();
}

absl::StatusOr<TransportUse> TransportUsers::Use(const Starter& start) {
  if (ended_) return absl::UnknownError("tcpx is being unloaded");
  if (TransportUse another = use_.lock()) return another;
  ForgetEnded();
  auto transport = start();
  if (!transport.ok()) return transport.status();
  transport_ = *std::move(transport);
  TransportUse first(this, [](TransportUsers* users) { users->Retire(); });
  use_ = first;
  return first;
}

void TransportUsers::Retire() {
  use_.reset();
  if (transport_ == nullptr || ended_) return;
  transport_->Retire();
  retired_.push_back(std::move(transport_));
}

bool TransportUsers::ForgetEnded() {
  for (auto it = retired_.begin(); it != retired_.end();) {
    it = (*it)->runtime().reactor.ended() ? retired_.erase(it) : it + 1;
  }
  return retired_.empty();
}

std::vector<std::unique_ptr<Transport>> TransportUsers::TakeRetired() {
  for (auto& transport : retired_) transport->runtime().lingering.Hurry();
  return std::exchange(retired_, {});
}

void TransportUsers::End(bool in_use) {
  if (!in_use) Retire();
  ended_ = true;
  if (transport_ != nullptr) transport_->Abandon();
  TakeRetired().clear();
}

}  // namespace tcpx
