#include "net_socket/comm/comm.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/gpu/gpu_hub.h"
#include "net_socket/gpu/gpu_pool.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

ConnectionSetup OfEnd(Direction direction, ConnectionSetup setup) {
  setup.direction = direction;
  return setup;
}

absl::Status CheckAllSealed(const ConnectionSetup& setup) {
  for (const LaneSocket& lane : setup.lanes) {
    if (!lane.fd.valid()) continue;
    absl::Status sealed = CheckSealed(setup.runtime->options.encrypt, &lane.seals);
    if (!sealed.ok()) return sealed;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisteredRegions::Make(void* data, size_t bytes, MemoryType type) const {
  auto region = std::make_unique<MemoryRegion>();
  region->data = static_cast<char*>(data);
  region->bytes = bytes;
  GpuHub* const gpu = setup_->runtime->gpu.get();
  if (type == MemoryType::kHost) {
    absl::Status status = gpu == nullptr ? absl::OkStatus() : gpu->CheckHost(data);
    if (!status.ok()) return status;
    return region;
  }
  if (gpu == nullptr || type != MemoryType::kCuda) {
    return absl::InvalidArgumentError(
        "regMr: this kind of memory was not announced: register host memory as NCCL_PTR_HOST; GPU memory needs "
        "TCPX_GPU_DIRECT_STAGING=1");
  }
  auto pool = gpu->PoolFor(data, setup_->device, setup_->sends());
  if (!pool.ok()) return pool.status();
  region->gpu = *pool;
  return region;
}

MemoryRegion* RegisteredRegions::Add(std::unique_ptr<MemoryRegion> region) {
  MemoryRegion* const raw = region.get();
  regions_[raw] = std::move(region);
  return raw;
}

Comm::Comm(ConnectionSetup setup, Direction direction)
    : setup_(OfEnd(direction, std::move(setup))),
      sealed_(CheckAllSealed(setup_)),
      failure_(&setup_, this, tie_),
      regions_(&setup_),
      progress_(&setup_, this, &failure_),
      numbers_(&setup_, this, &failure_, &progress_),
      sockets_(&setup_, this, tie_, &failure_, &mutex_),
      news_(&setup_, this, tie_, &failure_, &sockets_, &progress_) {}

// Before anybody has the comm, and so anything to send.
void Comm::Begin(int transfers_max) {
  transfers_max_ = transfers_max;
  numbers_.Join(tie_);
  if (!sealed_.ok()) failure_.FailFound(sealed_, kNoLane);
}

void Comm::WatchInLoop() {
  setup_.runtime->watchdog.JoinInLoop(
      setup_.activity, Watchdog::IntervalNs(setup_.runtime->options), [self = tie_.To(this)](int64_t now_ns) {
        return self.Ask(Watchdog::Next::kOver, [now_ns](Comm* comm) { return comm->progress_.LookInLoop(now_ns); });
      });
  if (setup_.health != nullptr) setup_.health->JoinInLoop(setup_.connection_id, health_user(), setup_.health_redialler);
  FailureGroup* const group = setup_.communicator->group.get();
  if (group != nullptr) group->JoinInLoop(tie_.To<FailureGroup::Member>(this));
  // A receiver says nothing but credits.
  if (!setup_.heals || (!sends() && setup_.max_receives == 1)) return;
  setup_.runtime->silences.JoinInLoop(setup_.activity, tuning::kLookNs, [self = tie_.To(this)](int64_t now_ns) {
    return self.Ask(Watchdog::Next::kOver, [now_ns](Comm* comm) { return comm->LooksForSilentLanes(now_ns); });
  });
}

Watchdog::Next Comm::LooksForSilentLanes(int64_t now_ns) {
  if (!LooksForSilence(now_ns)) return Watchdog::Next::kOver;
  const bool idle = FlightNow().messages == 0 && !healing().lanes().AnyLost() && !progress_.AnyQueued();
  return idle ? Watchdog::Next::kIdle : Watchdog::Next::kLook;
}

void Comm::LeaveWatch() {
  tie_.Cut();
  Runtime* const runtime = setup_.runtime;
  setup_.activity->Note();
  runtime->reactor.Post([member = tie_.To<FailureGroup::Member>(this), health = setup_.health,
                         group = setup_.communicator->group, id = setup_.connection_id, redialler = setup_.redialler,
                         key = progress_.probe().key(), communicator = setup_.communicator] {
    if (redialler != nullptr) redialler->CloseInLoop();
    if (group != nullptr) group->LeaveInLoop(member);
    communicator->stalls->LeaveInLoop(key);
    if (health != nullptr) health->LeaveInLoop(id);
  });
}

void Comm::RecordEvents() {
  EventRecorder::Settings settings;
  settings.sink = setup_.communicator->profiler.load(std::memory_order_acquire);
  if (settings.sink == nullptr) return;
  // NCCL 2.26, whose newest version is v10, takes an update of an event for its stop; 2.27.3 and later know it.
  settings.updates = setup_.communicator->has_finalize;
  settings.receive = !sends();
  settings.transfers = transfers_max_;
  MutexLock lock(mutex_);
  for (const LaneSocket& lane : setup_.lanes) settings.fds.push_back(lane.fd.get());
  events_.Record(settings);
}

void Comm::LaneOpened(int lane) TCPX_NO_THREAD_SAFETY_ANALYSIS { /* the mutex is held */
  events_.NoteLane(lane, setup_.lane_fd(lane));
}

void Comm::ReportMisuse(absl::string_view text) {
  if (logged_misuse_.exchange(true, std::memory_order_relaxed)) return;
  TCPX_WARN_TO(setup_.communicator->log, "%s", failure_.Report(text, kNoLane));
}

absl::StatusOr<MemoryRegion*> Comm::RegisterMemory(void* data, size_t bytes, MemoryType type) {
  auto region = regions_.Make(data, bytes, type);
  if (!region.ok()) return region.status();
  MutexLock lock(mutex_);
  GpuPool* const pool = (*region)->gpu;
  if (pool != nullptr && pool != staging_) {
    if (staging_ != nullptr) return absl::InvalidArgumentError("regMr: a connection serves the memory of one GPU");
    auto slots = GpuAllowance::Open(pool);
    if (!slots.ok()) return slots.status();
    OpenStaging(*std::move(slots));
    staging_ = pool;
    numbers_.NoteGpu(pool->place().device);
  }
  return regions_.Add(*std::move(region));
}

// NCCL frees the buffer after this and closes the comm only later, perhaps with requests outstanding (2.12 to 2.30).
void Comm::DeregisterMemory(MemoryRegion* region) {
  if (region == nullptr) return;
  MutexLock lock(mutex_);
  const bool in_flight = InFlight(region);
  if (in_flight) {
    events_.Drop();
    failure_.Fail(
        absl::UnavailableError("the connection was reset: its memory was deregistered with requests outstanding"), 0,
        Noise::kParting);
  }
  // A lane may be in the middle of Fail: failed() alone would come too late.
  if (in_flight || failed()) {
    healing().lanes().End();
    Quiesce();
  }
  regions_.Remove(region);
}

// Messages that were done when they were copied must not die with the copies.
void Comm::AwaitLanes() {
  const int64_t until_ns = MonotonicNanos() + setup_.runtime->options.linger_ns;
  for (; MonotonicNanos() < until_ns && healing().heals(); usleep(200)) {
    MutexLock lock(mutex_);
    if (failed() || InFlight(nullptr) || MayClose()) return;
  }
}

void Comm::Close() {
  AwaitLanes();
  MutexLock lock(mutex_);
  if (!InFlight(nullptr)) failure_.FailNow();
  const bool orderly = !failed() && !InFlight(nullptr);
  if (FailureGroup* const group = setup_.group()) group->NoteClosing(MonotonicNanos());
  if (!orderly) {
    failure_.Fail(absl::UnavailableError("the connection was closed with requests outstanding"), 0, Noise::kSilent);
    if (setup_.communicator->has_finalize && !setup_.fails_alone())
      setup_.communicator->aborted.store(true, std::memory_order_relaxed);
  }
  healing().lanes().End();
  Quiesce();
  if (setup_.heals) {
    const std::vector<uint64_t> taken = orderly ? TakenByLane() : std::vector<uint64_t>();
    (void)setup_.health->socket().Say(LeftNotice(setup_.connection_id, taken), /*may_go_unread=*/true);
  }
  StopWatching();
  numbers_.Leave();
  LeaveWatch();
  failure_.MoveToClosed();
  const LingeringSockets::Aborted aborted(setup_.communicator, &setup_.communicator->aborted);
  for (LaneSocket& lane : setup_.lanes) {
    if (!lane.fd.valid()) continue;
    if (orderly) {
      shutdown(lane.fd.get(), SHUT_WR);
    } else {
      (void)SetResetOnClose(lane.fd.get());
    }
    setup_.runtime->lingering.Release(std::move(lane.fd), orderly ? setup_.runtime->options.linger_ns : 0, aborted);
  }
}

}  // namespace tcpx
