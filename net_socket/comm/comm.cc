#include "net_socket/comm/comm.h"

#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/engine/linger.h"

namespace tcpx {
namespace {

constexpr char kPeerVanished[] =
    "the peer's process has ended without closing: killed or crashed? Its log or its host's (dmesg, the scheduler) "
    "says more";

}  // namespace

Comm::Comm(ConnectionSetup setup)
    : setup_(std::move(setup)), link_(std::make_shared<CommLink>(static_cast<Watched*>(this))) {}

Comm::~Comm() = default;

absl::Status Comm::status() const {
  std::lock_guard<std::mutex> lock(status_mutex_);
  return status_;
}

Trouble Comm::TroubleOf(absl::string_view what, int lane) const { return {&setup_, role(), lane, what, FlightNow()}; }

void Comm::Fail(absl::Status status, int lane, Noise noise) {
  if (failed()) return;
  // Who finds the end of a lane may find out why: the peer says so before it goes.
  if (noise == Noise::kWarn && setup_.health != nullptr && absl::IsUnavailable(status)) {
    setup_.health->Poll();
    if (setup_.health->PeerVanished()) {
      status = absl::UnavailableError(absl::StrCat(status.message(), "; ", kPeerVanished));
    }
  }
  FailFor("", std::move(status), lane, noise);
}

void Comm::FailFor(std::string cause, absl::Status status, int lane, Noise noise) {
  {
    std::lock_guard<std::mutex> lock(status_mutex_);
    if (!status_.ok()) return;
    status_ = status;
  }
  std::unique_lock<std::mutex> telling;
  if (communicator().group != nullptr) telling = communicator().group->Telling();
  if (cause.empty()) cause = CauseLine(TroubleOf(status.message(), lane));
  const bool first = JoinFailure(&cause, &noise);
  told_ = ReportLine(TroubleOf(status.message(), lane));
  // The line goes out before any call can return the error: the process may exit on it.
  if (noise == Noise::kWarn) TCPX_WARN_TO(communicator().log, "%s", told_);
  if (noise == Noise::kQuiet) TCPX_TRACE("%s", told_);
  failed_.store(true, std::memory_order_release);
  if (telling.owns_lock()) telling.unlock();
  const bool told =
      noise != Noise::kSilent && setup_.health != nullptr && setup_.health->Notify(setup_.connection_id, cause);
  if (!told) TellPeer(status);
  if (first) communicator().group->Spread(&setup_.runtime->reactor);
}

bool Comm::JoinFailure(std::string* cause, Noise* noise) {
  FailureGroup* const group = communicator().group.get();
  if (group == nullptr) return false;
  if (*noise == Noise::kSilent) {
    group->Hush();
    return false;
  }
  const bool first = group->Claim(*cause);
  if (!first) *cause = group->cause();
  if (*noise == Noise::kWarn && (!first || group->hushed())) *noise = Noise::kQuiet;
  return first;
}

absl::Status Comm::Refusal() {
  const int64_t every_ns = setup_.runtime->options.stall_warn_ns;
  if (communicator().repeat_warnings && every_ns > 0) {
    const int64_t now = MonotonicNanos();
    if (told_again_ns_ == 0) told_again_ns_ = now;
    if (now - told_again_ns_ >= every_ns) {
      told_again_ns_ = now;
      TCPX_WARN_TO(communicator().log, "still failed: %s", told_);
    }
  }
  return status();
}

void Comm::WatchInLoop() {
  setup_.runtime->watchdog.JoinInLoop(link_, setup_.runtime->options);
  if (setup_.health != nullptr) setup_.health->JoinInLoop(setup_.connection_id, link_);
  if (communicator().group != nullptr) communicator().group->JoinInLoop(link_);
}

void Comm::LeaveWatch() {
  link_->Cut();
  Runtime* const runtime = setup_.runtime;
  runtime->reactor.Post(
      [runtime, link = link_, health = setup_.health, group = communicator().group, id = setup_.connection_id] {
        runtime->watchdog.LeaveInLoop(link);
        if (group != nullptr) group->LeaveInLoop(link);
        if (health != nullptr) health->LeaveInLoop(id);
      });
}

void Comm::PeerDied(const absl::Status& status) { FailFor("", status, kNoLane, Noise::kWarn); }

void Comm::PeerFailed(const std::string& cause) {
  FailFor(cause, absl::UnavailableError(absl::StrCat("the peer failed: ", cause)), kNoLane, Noise::kWarn);
}

void Comm::ContextFailed(const std::string& cause) {
  FailFor(cause, absl::UnavailableError(absl::StrCat("another connection of the communicator failed: ", cause)),
          kNoLane, Noise::kQuiet);
}

void Comm::CheckProgress(int64_t now_ns) {
  if (!failed()) LookAtLanes(now_ns);
  if (!failed()) LookAtRequests(now_ns);
  if (!failed()) LookAtPaces(now_ns);
}

void Comm::LookAtLanes(int64_t now_ns) {
  const int64_t timeout_ns = setup_.runtime->options.peer_timeout_ns;
  liveness_.resize(setup_.lanes.size());
  for (int lane = 0; lane < lane_count(); ++lane) {
    LaneTcpInfo info;
    if (QueuedBytes(lane_fd(lane)) <= 0) {
      liveness_[lane].Rest();
    } else if (ReadLaneTcpInfo(lane_fd(lane), &info) && liveness_[lane].Dead(info, now_ns, timeout_ns)) {
      const std::string text = absl::StrFormat(
          "nothing that was sent has been acknowledged for %.1f s (TCPX_PEER_TIMEOUT is %.1f s): the network drops "
          "this flow, or the host is gone; look for a firewall, a bad link or a wrong MTU between the two addresses",
          info.last_ack_ms * 1e-3, timeout_ns * 1e-9);
      FailFor("", absl::UnavailableError(text), lane, Noise::kWarn);
      return;
    }
  }
}

void Comm::LookAtRequests(int64_t now_ns) {
  const Options& options = setup_.runtime->options;
  const Flight flight = FlightNow();
  if (stall_.Stalled(flight, now_ns, options.stall_warn_ns)) {
    const std::string text = absl::StrFormat(
        "no progress for %.1f s; nothing is wrong with the connection as far as is known: the peer may be busy, "
        "stopped or waiting for another rank",
        (now_ns - stall_.since_ns()) * 1e-9);
    TCPX_INFO_TO(communicator().log, "%s", ReportLine(TroubleOf(text, 0)));
  }
  const bool stuck = stall_.since_ns() != 0 && now_ns - stall_.since_ns() >= options.peer_timeout_ns;
  if (!stuck) return;
  if (peer_ended_.load(std::memory_order_relaxed)) {
    FailFor("", absl::UnavailableError(kPeerVanished), kNoLane, Noise::kWarn);
  } else if (LaneEnded()) {
    FailFor("", absl::UnavailableError("a lane has ended without its connection"), kNoLane, Noise::kWarn);
  }
}

void Comm::LookAtPaces(int64_t now_ns) {
  const int64_t long_ns = setup_.runtime->options.stall_warn_ns;
  if (long_ns == 0) return;
  for (const SlowLane& slow : slowness_.Look(Paces(), now_ns, long_ns)) {
    slow_lanes_ = slow_lanes_ + 1;
    const std::string text = absl::StrFormat(
        "a slow lane: %.1f MB/s for %.1f s, where its connection's lanes do %.1f; it is given less to carry; look at "
        "the path of this flow (a bad link, a crowded queue, a limit per flow)",
        slow.bytes_per_second * 1e-6, long_ns * 1e-9, slow.median * 1e-6);
    TCPX_INFO_TO(communicator().log, "%s", ReportLine(TroubleOf(text, static_cast<int>(slow.lane) + 1)));
  }
}

void Comm::RecordEvents() {
  const ProfilerSink sink = communicator().profiler.load(std::memory_order_acquire);
  if (sink == nullptr) return;
  EventRecorder::Settings settings;
  settings.sink = sink;
  settings.updates = communicator().profiler_updates;
  settings.receive = receives();
  settings.transfers = transfers_max();
  for (int lane = 0; lane < lane_count(); ++lane) settings.fds.push_back(lane_fd(lane));
  recorder_ = std::make_unique<EventRecorder>(settings);
}

void Comm::ReportMisuse(absl::string_view text) {
  if (told_of_misuse_.exchange(true, std::memory_order_relaxed)) return;
  TCPX_WARN_TO(communicator().log, "%s", ReportLine(TroubleOf(text, kNoLane)));
}

absl::StatusOr<GpuPool*> Comm::FindPool(const void* data, MemoryType type) const {
  GpuHub* const gpu = setup_.runtime->gpu.get();
  if (type == MemoryType::kHost) {
    absl::Status status = gpu == nullptr ? absl::OkStatus() : gpu->CheckHost(data);
    if (!status.ok()) return status;
    return nullptr;
  }
  if (gpu == nullptr || type != MemoryType::kCuda) {
    return absl::InvalidArgumentError(
        "regMr: this kind of memory was not announced: register host memory as NCCL_PTR_HOST; GPU memory needs "
        "TCPX_GPU_DIRECT_STAGING=1");
  }
  return gpu->PoolFor(data, setup_.device, sends());
}

absl::StatusOr<MemoryRegion*> Comm::RegisterMemory(void* data, size_t bytes, MemoryType type) {
  auto pool = FindPool(data, type);
  if (!pool.ok()) return pool.status();
  auto region = std::make_unique<MemoryRegion>();
  region->data = static_cast<char*>(data);
  region->bytes = bytes;
  region->type = type;
  region->gpu = *pool;
  MemoryRegion* raw = region.get();
  std::lock_guard<std::mutex> lock(mutex_);
  raw->id = ++last_region_id_;
  if (*pool != nullptr) {
    absl::Status status = StageThrough(*pool);
    if (!status.ok()) return status;
  }
  regions_[raw] = std::move(region);
  return raw;
}

// NCCL frees the buffer after this and closes the comm only later, perhaps with requests outstanding (2.12 to 2.30).
void Comm::DeregisterMemory(MemoryRegion* region) {
  if (region == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const bool in_flight = InFlight(region);
  if (in_flight) {
    if (recorder_ != nullptr) recorder_->Drop();
    Fail(absl::UnavailableError("the connection was reset: its memory was deregistered with requests outstanding"), 0,
         Noise::kSilent);
  }
  // A lane may be in the middle of Fail: failed() alone would come too late.
  if (in_flight || failed()) {
    Quiesce();
  } else {
    ForgetRegion(*region);
  }
  regions_.erase(region);
}

void Comm::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool orderly = !failed() && Idle();
  if (!orderly) Fail(absl::UnavailableError("the connection was closed with requests outstanding"), 0, Noise::kSilent);
  Quiesce();
  StopWatching();
  LeaveWatch();
  for (LaneSocket& lane : setup_.lanes) {
    if (orderly) {
      shutdown(lane.fd.get(), SHUT_WR);
    } else {
      (void)SetResetOnClose(lane.fd.get());
    }
    ReleaseSocket(&setup_.runtime->reactor, std::move(lane.fd), orderly ? setup_.runtime->options.linger_ns : 0);
  }
}

}  // namespace tcpx
