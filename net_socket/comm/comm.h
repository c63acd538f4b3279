// comm.h: what a send comm and a receive comm have in common: lanes, one sticky error, memory regions, closing.
//
// Purpose: a connection's two ends are a SendComm and a ReceiveComm. Here is all that does not depend on the direction.
//
// Threads: NCCL's calls take mutex_: isend, irecv and test only try it (a comm being closed or deregistered answers
//          "not yet"), deregMr and close wait for it. Lanes of the progress pool and the reactor never take it; they
//          touch the striper, the receives and the failure. Housekeeping and other connections reach a comm through
//          links.
// Parts:   the failure (connection_failure.h), the registered memory (registered_regions.h), housekeeping's looks
//          (progress_check.h), a profiler's events (request_events.h). Here are the lock and the closing.
// States:  open -> failed (first error sticks) -> closed (connection_state.h). Close takes the orderly road exactly when
//          nothing failed and no request is unfinished; else lanes are reset.
// Lifetime: a request, a region and a lane die with their comm. Close, then delete.
// Errors:  the first failure's status is what every later call returns. The peer hears of it through the health socket,
//          and so do the other connections of the communicator (FailureGroup).
#ifndef TCPX_NET_SOCKET_COMM_COMM_H_
#define TCPX_NET_SOCKET_COMM_COMM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nccl/plugin_api.h"
#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/progress_check.h"
#include "net_socket/comm/registered_regions.h"
#include "net_socket/comm/request_events.h"
#include "net_socket/health/watchdog.h"
#include "net_socket/stats/hub.h"

namespace tcpx {

class GpuAllowance;
class OpenLanes;
class PoolLane;
class TransferTimes;
struct LaneCounts;
struct LaneNumbers;
struct Runtime;

// Messages that were reported done, and their bytes; how often a lane became slow for long (slow_lanes.h); what was
// healed.
struct CommTally {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t slow_lanes = 0;
  HealingTally healed;
};

class Comm : protected ConnectionEnd,
             private FailureGroup::Member,
             private HealthUser,
             private LaneHealing::Owner,
             private NumbersSource,
             private SocketTaker,
             private Watchdog::Subject {
 public:
  virtual ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  virtual absl::Status Test(Request* request, bool* done, int* sizes) = 0;

  absl::StatusOr<MemoryRegion*> RegisterMemory(void* data, size_t bytes, MemoryType type);
  void DeregisterMemory(MemoryRegion* region);
  // Both roads. Afterwards only the destructor may be called.
  void Close();

  // In the reactor, once, after the constructor: from here on housekeeping watches.
  virtual void WatchInLoop();

  bool failed() const { return failure_.failed(); }
  bool sends() const { return direction_ == Direction::kSend; }
  // By which others reach it until it is closed.
  Link<SocketTaker> taker() { return LinkTo<SocketTaker>(this); }
  Link<HealthUser> health_user() { return LinkTo<HealthUser>(this); }
  // From any thread.
  CommTally tally() const;
  // As of the latest look of the statistics, the last one behind Close; none where nobody asks for them.
  std::optional<ConnectionNumbers> numbers() const;
  // Before the first request: the communicator's profiler, if it has one, shall learn of each.
  void RecordEvents();
  // A call's arguments were wrong: one WARN per connection, since NCCL calls again and again.
  void ReportMisuse(absl::string_view text);

 protected:
  Comm(ConnectionSetup setup, Direction direction);

  // Most messages that are posted and not over at once.
  virtual int transfers_max() const = 0;
  // True exactly when an unfinished request uses `region`, or any where region is null.
  virtual bool InFlight(const MemoryRegion* region) TCPX_REQUIRES(mutex_) = 0;
  // Returns once no thread but the caller's touches the lanes or a user's buffer. May be called again.
  virtual void Quiesce() TCPX_REQUIRES(mutex_) = 0;
  // The last thing before the sockets are left to linger: nothing of this comm is touched by the reactor
  // afterwards.
  virtual void StopWatching() TCPX_REQUIRES(mutex_) {}
  // GPU memory is about to be registered for the first time: from now on messages may be staged.
  virtual void OpenStaging(std::unique_ptr<GpuAllowance> slots) TCPX_REQUIRES(mutex_) = 0;
  template <typename Target>
  Link<Target> LinkTo(Target* self) const {
    return tie_.To(self);
  }
  // The peer's process has ended without closing.
  virtual void PeerEnded() {
    progress_.PeerEnded();
    PeerLeft({});
  }
  void PeerLeft(const std::vector<uint64_t>& taken) override;
  // A lane goes on with another socket, or its first.
  virtual void LaneResumed(int lane, Seals* seals);
  void LaneRested(int lane) override;

  // Lanes that heal. Null: the calling thread moves the lane.
  virtual PoolLane* pool_lane(int lane) = 0;
  // Makes what moves a lane that has its first socket.
  virtual void MakeLane(int lane) TCPX_REQUIRES(mutex_) = 0;
  // Gives a lane that the calling thread moves another socket. A link is held.
  virtual absl::Status ReplaceSocketOf(int lane, SocketOffer offer) TCPX_REQUIRES(mutex_) = 0;
  // How much of each lane's stream this end has taken, once no thread moves the lanes; empty: it does not receive.
  virtual std::vector<uint64_t> TakenByLane() TCPX_REQUIRES(mutex_) { return {}; }
  // Of an orderly close: true once nothing is left that the lanes' stores alone hold.
  virtual bool MayClose() TCPX_REQUIRES(mutex_) { return true; }
  LaneHealing* healing() const { return healing_.get(); }
  // For the statistics: what a lane has moved, and its pace (0: unknown).
  virtual const LaneCounts* CountsOf(int lane) const = 0;  // null: it never had a socket
  virtual int64_t PaceOf(int) const { return 0; }
  // Once the lanes are there, by the constructor of whoever owns them. Fails where one is not sealed that must be.
  void Stand();
  // Null: nobody asks for statistics.
  TransferTimes* times() const { return times_.get(); }
  // As the statistics tell messages apart; the lanes may be one.
  bool IsBulk(size_t bytes) const { return lane_count() > 1 && bytes > setup_.express_bytes; }

  const ConnectionSetup& setup() const { return setup_; }
  int lane_fd(int lane) const { return setup_.lanes[lane].fd.get(); }
  // What seals the lane's first socket: whoever moves a half of it takes that. Empty where nothing is encrypted.
  Seals& seals(int lane) { return setup_.lanes[static_cast<size_t>(lane)].seals; }
  const PathProfile& path() const { return setup_.lanes[0].profile; }
  // Lanes that it may have: some may be without a socket until they are opened (ConnectionSetup::steered).
  int lane_count() const { return static_cast<int>(setup_.lanes.size()); }
  Runtime* runtime() const { return setup_.runtime; }
  ConnectionFailure& failure() { return failure_; }
  RequestEvents& events() TCPX_REQUIRES(mutex_) { return events_; }
  // Whose CPU the statistics and the verdicts look at: one instruction, while it is the same.
  void SeeCaller() TCPX_REQUIRES(mutex_) {
    if (caller_ != __builtin_thread_pointer()) NoteCaller();
  }
  // A request was reported done, and its times are kept: who has seen the count sees them. The mutex is held, so that no
  // locked instruction is needed.
  void Count(size_t bytes) TCPX_REQUIRES(mutex_) {
    SeeCaller();
    const size_t kind = IsBulk(bytes) ? 1 : 0;
    bytes_[kind].store(bytes_[kind].load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    messages_[kind].store(messages_[kind].load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  Mutex mutex_;

 private:
  void PeerLost(const absl::Status& how) override { how.ok() ? PeerEnded() : failure_.FailFound(how, kNoLane); }
  void PeerFailed(const std::string& cause, bool parting) override {
    parting ? failure_.NotePeerParted(cause) : failure_.FailWithPeer(cause);
  }
  void ContextFailed(const std::string& cause) override { failure_.FailWithCommunicator(cause); }
  void CheckProgress(int64_t now_ns) override { progress_.LookInLoop(now_ns); }
  void PeerSaysWaits(const std::string& news) override;
  // It is another thread than before. No two threads that run have the same pointer, and reading it is one instruction,
  // where pthread_self is a call.
  void NoteCaller() TCPX_REQUIRES(mutex_);
  int CallerThread() const override { return caller_id_.load(std::memory_order_relaxed); }
  uint64_t MessagesDone() const override { return messages_[0] + messages_[1]; }
  void ReadNumbers(ConnectionNumbers* numbers) override;
  void ReadVerdict(ConnectionNumbers* numbers);
  // Without what only the reactor knows.
  void ReadCounts(ConnectionNumbers* numbers);
  void ReadLanes(ConnectionNumbers* numbers);
  bool HasWorkForCaller() const;
  void DescribeFor(ConnectionNumbers* numbers) const;
  void NameLanes(ConnectionNumbers* numbers) const;
  void NameLane(int index, LaneNumbers* lane) const;
  void ReadLane(int index, LaneNumbers* lane);
  void LeaveStats();
  void HealthLost() override;
  void HealthBack(bool counts) override;
  bool LanesGoneFor(int64_t ns, bool in_order) override;
  bool LaneStands() override;
  bool HeardWithin(int64_t ns) override;
  Handover TakeSocket(int lane, SocketOffer* offer) override;
  Handover OpenLane(int lane, SocketOffer* offer);
  void AwaitLanes();
  absl::Status StageThrough(GpuPool* pool) TCPX_REQUIRES(mutex_);
  void LeaveWatch();
  // Where lanes come and go each has its own part of the budget.
  void EnterOpenLanes();

  void JoinStats();

  std::array<std::atomic<uint64_t>, 2> messages_{};  // express, bulk
  std::array<std::atomic<uint64_t>, 2> bytes_{};
  std::atomic<bool> told_of_misuse_{false};
  const void* caller_ TCPX_GUARDED_BY(mutex_) = nullptr;
  std::atomic<int> caller_id_{0};  // 0: not known
  ConnectionSetup setup_;
  const absl::Status sealed_;              // of all sockets that it was made with
  std::unique_ptr<OpenLanes> open_lanes_;  // the reactor's; null: lanes don't come and go
  const Direction direction_;
  Tie tie_;
  const std::unique_ptr<LaneHealing> healing_;  // null: its lanes don't heal
  ConnectionFailure failure_;
  RequestEvents events_ TCPX_GUARDED_BY(mutex_);
  RegisteredRegions regions_;                           // but for Make under mutex_
  GpuPool* staging_ TCPX_GUARDED_BY(mutex_) = nullptr;  // that messages are staged through
  std::atomic<int> gpu_{-1};                            // its device, for the statistics
  ProgressCheck progress_;
  std::unique_ptr<TransferTimes> times_;  // what it points to is under mutex_, as its header says
  std::shared_ptr<StatsEntry> stats_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_COMM_H_
