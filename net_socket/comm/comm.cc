#include "net_socket/comm/comm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "common/address.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/transfer_times.h"
#include "net_socket/gpu/gpu_pool.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/stats/hub.h"

namespace tcpx {
namespace {

constexpr int64_t kProbesWithoutHealthNs = 2 * kSecond;

// A stream with something unread may have ended behind that.
bool StandsReadOut(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
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

Comm::Comm(ConnectionSetup setup, Direction direction)
    : setup_(std::move(setup)),
      sealed_(CheckAllSealed(setup_)),
      direction_(direction),
      healing_(setup_.heals ? std::make_unique<LaneHealing>(&setup_, direction, LinkTo<LaneHealing::Owner>(this))
                            : nullptr),
      failure_(&setup_, direction, this, tie_, healing_.get()),
      regions_(&setup_, direction),
      progress_(&setup_, this, &failure_) {
  if (setup_.steered) EnterOpenLanes();
}

Comm::~Comm() = default;

void Comm::EnterOpenLanes() {
  open_lanes_ = std::make_unique<OpenLanes>(setup_.runtime->lane_budget.get());
  for (size_t lane = 1; lane < setup_.lanes.size(); ++lane) {
    if (setup_.lanes[lane].fd.valid()) {
      open_lanes_->Open(lane);
    } else {
      setup_.lanes[lane].absence.Set(true);
    }
  }
  setup_.taken_lanes.reset();
}

void Comm::NoteCaller() {
  caller_ = __builtin_thread_pointer();
  caller_id_.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_relaxed);
}

// Before anybody has the comm, and so anything to send.
void Comm::Stand() {
  JoinStats();
  if (!sealed_.ok()) failure_.FailFound(sealed_, kNoLane);
}

void Comm::WatchInLoop() {
  setup_.runtime->watchdog.JoinInLoop(LinkTo<Watchdog::Subject>(this), setup_.runtime->options);
  if (setup_.health != nullptr) setup_.health->JoinInLoop(setup_.connection_id, health_user(), setup_.health_redialler);
  FailureGroup* const group = setup_.communicator->group.get();
  if (group != nullptr) group->JoinInLoop(LinkTo<FailureGroup::Member>(this));
  // A receiver says nothing but credits.
  if (healing_ != nullptr && (sends() || setup_.max_receives > 1)) healing_->LookInLoop();
}

// By whoever reads the health socket.
void Comm::PeerSaysWaits(const std::string& news) {
  setup_.runtime->reactor.Post([link = LinkTo(this), news] {
    link.With([&news](Comm* comm) { comm->progress_.HearInLoop(news, MonotonicNanos()); });
  });
}

void Comm::LeaveWatch() {
  tie_.Cut();
  Runtime* const runtime = setup_.runtime;
  runtime->reactor.Post([runtime, subject = LinkTo<Watchdog::Subject>(this),
                         member = LinkTo<FailureGroup::Member>(this), health = setup_.health,
                         group = setup_.communicator->group, id = setup_.connection_id, redialler = setup_.redialler,
                         key = progress_.key(), communicator = setup_.communicator] {
    if (redialler != nullptr) redialler->CloseInLoop();
    runtime->watchdog.LeaveInLoop(subject);
    if (group != nullptr) group->LeaveInLoop(member);
    communicator->stalls->LeaveInLoop(key);
    if (health != nullptr) health->LeaveInLoop(id);
  });
}

void Comm::RecordEvents() {
  EventRecorder::Settings settings;
  settings.sink = setup_.communicator->profiler.load(std::memory_order_acquire);
  if (settings.sink == nullptr) return;
  settings.updates = setup_.communicator->profiler_updates;
  settings.receive = direction_ == Direction::kReceive;
  settings.transfers = transfers_max();
  MutexLock lock(mutex_);
  for (int lane = 0; lane < lane_count(); ++lane) settings.fds.push_back(lane_fd(lane));
  events_.Record(settings);
}

void Comm::ReportMisuse(absl::string_view text) {
  if (told_of_misuse_.exchange(true, std::memory_order_relaxed)) return;
  TCPX_WARN_TO(setup_.communicator->log, "%s", failure_.Report(text, kNoLane));
}

absl::StatusOr<MemoryRegion*> Comm::RegisterMemory(void* data, size_t bytes, MemoryType type) {
  auto region = regions_.Make(data, bytes, type);
  if (!region.ok()) return region.status();
  MutexLock lock(mutex_);
  if ((*region)->gpu != nullptr) {
    absl::Status status = StageThrough((*region)->gpu);
    if (!status.ok()) return status;
  }
  return regions_.Add(*std::move(region));
}

absl::Status Comm::StageThrough(GpuPool* pool) {
  if (staging_ == pool) return absl::OkStatus();
  if (staging_ != nullptr) return absl::InvalidArgumentError("regMr: a connection serves the memory of one GPU");
  auto slots = GpuAllowance::Open(pool);
  if (!slots.ok()) return slots.status();
  OpenStaging(*std::move(slots));
  staging_ = pool;
  gpu_.store(pool->place().device, std::memory_order_relaxed);
  return absl::OkStatus();
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
  if ((in_flight || failed()) && healing_ != nullptr) healing_->Close();
  if (in_flight || failed()) Quiesce();
  regions_.Remove(region);
}

// Before the connection gives up, or another socket is waited for in vain. The lanes look for themselves.
void Comm::PeerLeft(const std::vector<uint64_t>& taken) {
  if (healing_ == nullptr) return;
  (void)healing_->PeerLeft(taken);
  (void)healing_->WithLanes([this] {
    for (int lane = 0; lane < lane_count(); ++lane) {
      if (PoolLane* const pooled = pool_lane(lane)) ProgressPool::Kick(pooled);
    }
  });
}

Handover Comm::TakeSocket(int lane, SocketOffer* offer) {
  if (healing_ == nullptr || failure_.peer_told() || healing_->peer_left()) return Handover::kRefused;
  // A peer must hear why this end fails, or that it closes, before it is told that there is nothing to be had.
  if (failed() || !healing_->heals()) return Handover::kBusy;
  const absl::Status sealed = CheckSealed(setup_.runtime->options.encrypt, offer->seals.get());
  if (!sealed.ok() && !offer->parks) {
    failure_.FailFound(sealed, lane);
    return Handover::kRefused;
  }
  if (lane_fd(lane) < 0) return OpenLane(lane, offer);
  if (PoolLane* const pooled = pool_lane(lane)) {
    Reactor* const reactor = &setup_.runtime->reactor;
    offer->done = [reactor, lane, link = LinkTo(this), seals = offer->seals,
                   done = std::move(offer->done)](uint64_t taken) {
      reactor->Post([lane, link, done, seals, taken] {
        done(taken);
        link.With([&](Comm* comm) { comm->LaneResumed(lane, seals.get()); });
      });
    };
    const bool open = healing_->WithLanes([&] {
      pooled->Offer(std::move(*offer));
      ProgressPool::Kick(pooled);
    });
    return open ? Handover::kTaken : Handover::kBusy;
  }
  if (!mutex_.try_lock()) return Handover::kBusy;
  MutexLock lock(mutex_, std::adopt_lock);
  if (failed() || !healing_->heals()) return Handover::kBusy;
  const std::shared_ptr<Seals> seals = offer->seals;
  const absl::Status replaced = ReplaceSocketOf(lane, std::move(*offer));
  // The link is held.
  if (!replaced.ok()) failure_.FailFound(replaced, lane);
  LaneResumed(lane, seals.get());
  return Handover::kTaken;
}

// The first socket of a lane. A link is held.
Handover Comm::OpenLane(int lane, SocketOffer* offer) {
  if (!mutex_.try_lock()) return Handover::kBusy;
  MutexLock lock(mutex_, std::adopt_lock);
  if (failed() || !healing_->heals() || !setup_.steered) return Handover::kRefused;
  if (setup_.runtime->lane_budget->left() <= 0) return Handover::kRefused;
  OwnedFd fd(fcntl(offer->fd, F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return Handover::kRefused;
  LaneSocket& socket = setup_.lanes[static_cast<size_t>(lane)];
  socket.local = LocalAddress(fd.get()).value_or(SocketAddress());
  socket.peer = PeerAddress(fd.get()).value_or(SocketAddress());
  socket.fd = std::move(fd);
  if (offer->seals != nullptr) socket.seals = std::move(*offer->seals);
  socket.absence.Set(false);
  events_.NoteLane(lane, lane_fd(lane));
  healing_->Back(lane);
  if (!healing_->WithLanes([&]() TCPX_NO_THREAD_SAFETY_ANALYSIS {
        MakeLane(lane); /* mutex_ is held */
      }))
    return Handover::kRefused;
  offer->done(0);
  LaneResumed(lane, &socket.seals);
  // Whoever failed meanwhile may not have seen it.
  if (failed()) shutdown(lane_fd(lane), SHUT_RDWR);
  return Handover::kTaken;
}

void Comm::LaneResumed(int lane, Seals*) {
  if (open_lanes_ != nullptr && lane > 0) open_lanes_->Open(static_cast<size_t>(lane));
  if (healing_->TakeOpened(lane)) return;
  const int fd = lane_fd(lane);
  healing_->CountResumed();
  TCPX_INFO_TO(setup_.communicator->log, "comm %x %s device %d: lane %d goes on, %s to %s", setup_.communicator->id,
               DirectionName(direction_), setup_.device, lane, LocalAddress(fd).value_or(SocketAddress()).ToString(),
               PeerAddress(fd).value_or(SocketAddress()).ToString());
}

// Unless it has come back meanwhile.
void Comm::LaneRested(int lane) {
  if (open_lanes_ != nullptr && !healing_->up(lane)) open_lanes_->Close(static_cast<size_t>(lane));
}

// Nothing else may be heard of a peer on idle lanes: its kernel answers, also for a process that is stopped.
void Comm::HealthLost() {
  progress_.HealthChangedInLoop();
  (void)SetIdleProbes(lane_fd(0), kProbesWithoutHealthNs);
}

void Comm::HealthBack(bool counts) {
  progress_.HealthChangedInLoop();
  (void)SetIdleProbes(lane_fd(0));
  if (counts && healing_ != nullptr) healing_->CountHealth();
}

bool Comm::LanesGoneFor(int64_t ns, bool in_order) {
  return healing_ != nullptr && !healing_->peer_left() && healing_->NoneFor(ns) &&
         (!in_order || healing_->zero_ended());
}

bool Comm::LaneStands() {
  for (int lane = 0; lane < lane_count(); ++lane) {
    if (healing_ != nullptr && healing_->up(lane) && StandsReadOut(lane_fd(lane))) return true;
  }
  return false;
}

bool Comm::HeardWithin(int64_t ns) {
  for (int lane = 0; lane < lane_count(); ++lane) {
    LaneTcpInfo info;
    if (healing_ != nullptr && !healing_->up(lane)) continue;
    if (ReadLaneTcpInfo(lane_fd(lane), &info) && info.heard_ms() * kMillisecond < ns) return true;
  }
  return false;
}

// Messages that were done when they were copied must not die with the copies.
void Comm::AwaitLanes() {
  const int64_t until_ns = MonotonicNanos() + setup_.runtime->options.linger_ns;
  for (; MonotonicNanos() < until_ns && healing_->heals(); usleep(200)) {
    MutexLock lock(mutex_);
    if (failed() || InFlight(nullptr) || MayClose()) return;
  }
}

void Comm::Close() {
  if (healing_ != nullptr) AwaitLanes();
  MutexLock lock(mutex_);
  if (!InFlight(nullptr)) failure_.FailNow();
  const bool orderly = !failed() && !InFlight(nullptr);
  if (setup_.communicator->group != nullptr) setup_.communicator->group->NoteClosing(MonotonicNanos());
  if (!orderly) {
    failure_.Fail(absl::UnavailableError("the connection was closed with requests outstanding"), 0, Noise::kSilent);
    if (setup_.communicator->has_finalize) setup_.communicator->aborted.store(true, std::memory_order_relaxed);
  }
  if (healing_ != nullptr) healing_->Close();
  Quiesce();
  if (healing_ != nullptr) {
    setup_.health->members().NotifyLeft(setup_.connection_id, orderly ? TakenByLane() : std::vector<uint64_t>());
  }
  StopWatching();
  LeaveStats();
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
