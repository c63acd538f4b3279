#include "net_socket/plugin/transport.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/counted.h"
#include "common/fd.h"
#include "common/interfaces.h"
#include "common/log.h"
#include "net_socket/engine/engine.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/stats/hub.h"

namespace tcpx {

// How long a progress thread looks for more work before it sleeps, at most.
constexpr int64_t kSpinNs = 50 * kMicrosecond;

Transport::Transport(const Options& options, const Secret* secret, LaneNotes* notes, std::unique_ptr<GpuHub> gpu)
    : runtime_(options), acceptor_(&runtime_, secret), dialler_(&runtime_, secret) {
  runtime_.lane_notes = notes;
  runtime_.gpu = std::move(gpu);
}

absl::StatusOr<std::unique_ptr<Transport>> Transport::Start(const Options& options, const ThreadPlan& plan,
                                                            const Secret* secret, LaneNotes* notes,
                                                            std::unique_ptr<GpuHub> gpu) {
  std::unique_ptr<Transport> transport(new Transport(options, secret, notes, std::move(gpu)));
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

}  // namespace tcpx
