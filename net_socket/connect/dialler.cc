#include "net_socket/connect/dialler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/counted.h"
#include "common/log.h"
#include "common/random.h"
#include "common/traffic_class.h"
#include "net_socket/connect/connect_bounds.h"
#include "net_socket/connect/health_dial.h"
#include "net_socket/connect/resume_dials.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/nic_socket.h"

namespace tcpx {

// All lanes of one connect.
class Dialler::Dial final : public DialLane::Owner, private HealthWaiters::Waiter {
 public:
  Dial(Dialler* dialler, uint64_t key, DialRequest request)
      : dialler_(dialler), key_(key), dialling_{dialler->runtime_, dialler->secret_, std::move(request)} {}
  ~Dial() override {
    for (auto timer : {pause_timer_, bound_timer_, progress_timer_}) runtime()->reactor.CancelTimerInLoop(timer);
    LeaveHealth();
    dialler_->turns_.EndedInLoop(request().handle.address.ToString(), key_);
  }

  // Once it is its turn.
  void StartInLoop() {
    for (int i = 0; i < request().lanes; ++i) lanes_.push_back(std::make_unique<DialLane>(&dialling_, this, i));
    const int64_t bound_ns = ConnectBoundNs(runtime()->options);
    bound_timer_ = runtime()->reactor.AddDeadlineInLoop(bound_ns, [this, bound_ns] {
      const std::string when = absl::StrFormat("given up after %d s, ", bound_ns / kSecond);
      Finish(Missing().Describe(Missing().Progress(when)));
    });
    WatchProgress();
    PlanFirstPaths();
    FirstInLoop();
  }

 private:
  void LaneAnswered(DialLane* lane) override {
    if (lane->index() == DialLane::kHealth) {
      const HealthSettings settings = HealthSettingsFor(runtime()->options, lane->answer().features);
      LaneSocket socket = lane->TakeSocket();
      health_->UpInLoop(std::move(socket.fd), settings, std::move(socket.seals));
      return;
    }
    WatchProgress();
    if (lane->index() == 0 && !others_dialled_) {
      if (first_paths_.size() > 1) dialler_->reached_[request().handle.address.ToString()] = lane->path().peer;
      others_dialled_ = true;
      wants_health_ = (lane->answer().features & kFeatureHealth) != 0;
      if (wants_health_) health_->waiters().AwaitInLoop(this);
      DialOthers(lane->answer());
    }
    FinishIfComplete();
  }

  // The path of a lane that is up; preferably not lane 0's, which has the small messages.
  const LanePath* OtherPath(const DialLane& lane) override {
    if (lane.index() == DialLane::kHealth) return nullptr;
    if (lane.index() == 0) {
      if (first_paths_.size() < 2) return nullptr;
      return &first_paths_[lane.path().peer == first_paths_[0].peer ? 1 : 0];
    }
    for (size_t i = lanes_.size(); i-- > 0;) {
      const LanePath& path = lanes_[i]->path();
      if (lanes_[i]->answered() && !SamePath(path, lane.path())) return &path;
    }
    return nullptr;
  }

  // With another connection id, soon: of the old one this side and the acceptor think differently.
  void BeginAnew(absl::Status why) override {
    if (finished_ || pausing_) return;
    const Options& options = runtime()->options;
    if (begun_anew_ >= options.retry_count) return Finish(std::move(why));
    ++begun_anew_;
    pausing_ = true;
    for (auto& lane : lanes_) lane->Halt();
    // Not at once: a lane, or the health socket, is on the stack.
    const int64_t at_ns = MonotonicNanos() + begun_anew_ * options.retry_sleep_ns;
    pause_timer_ = runtime()->reactor.AddTimerInLoop(at_ns, [this] {
      LeaveHealth();
      wants_health_ = health_up_ = others_dialled_ = pausing_ = false;
      FirstInLoop();
    });
  }

  // Ends the dial; it is destroyed soon after.
  void Finish(absl::Status status) override {
    if (finished_) return;
    finished_ = true;
    dialler_->turns_.EndedInLoop(request().handle.address.ToString(), key_);
    if (!status.ok()) dialler_->log_.FailedInLoop(*request().communicator, std::string(status.message()));
    Result result = status.ok() ? Result(MakeComm()) : Result(std::move(status));
    {
      MutexLock lock(dialler_->mutex_);
      dialler_->results_[key_] = std::move(result);
    }
    // Not destroyed here: a lane of this dial is still on the stack.
    dialler_->runtime_->reactor.AddTimerInLoop(0, [dialler = dialler_, key = key_] { dialler->dials_.erase(key); });
  }

  bool Connected(const DialLane&, Hello*) override { return true; }
  bool RefusalIsFinal() override { return false; }
  void NotRefused() override {}
  int64_t TakeDialTurn() override { return 0; }

  void DialHealthInLoop() override {
    health_lane_ = std::make_unique<DialLane>(&dialling_, this, DialLane::kHealth);
    health_lane_->DialInLoop(lanes_[0]->path());
  }

  void HealthUpInLoop() override {
    health_up_ = true;
    FinishIfComplete();
  }

  void FinishIfComplete() {
    const auto answered = [](auto& lane) { return lane->answered(); };
    if (finished_ || pausing_ || !std::all_of(lanes_.begin(), lanes_.end(), answered)) return;
    if (wants_health_ && !health_up_) return;
    if (wants_health_ && health_->socket().state() == HealthState::kLost) {
      health_up_ = false;
      return health_->waiters().AwaitInLoop(this);
    }
    if (wants_health_ && health_->socket().state() != HealthState::kUp) {
      return BeginAnew(lanes_[0]->Describe(absl::UnavailableError("the health socket to the peer broke")));
    }
    bool all_up = true;
    for (auto& lane : lanes_) all_up = lane->StillUpInLoop() && all_up;
    // Once it is said the acceptor hands the connection out: nothing may begin anew after it.
    if (all_up && lanes_[0]->SayEstablishedInLoop()) Finish(absl::OkStatus());
  }

  void FirstInLoop() {
    absl::Status random = FillRandom(dialling_.id.data(), dialling_.id.size());
    if (!random.ok()) return Finish(random);
    health_ = runtime()->health.UseDialledInLoop(request().device->index, request().handle.address);
    const uint64_t tag = health_->tag();
    std::memcpy(dialling_.id.data(), &tag, sizeof(tag));
    lanes_[0]->DialInLoop(first_paths_[0]);
  }

  void PlanFirstPaths() {
    for (const SocketAddress& peer : {request().handle.address, request().handle.other_address}) {
      if (!peer.valid()) continue;
      first_paths_.push_back({&NicTowards(request().device->NicsFor(peer.family()), peer), peer});
    }
    const auto reached = dialler_->reached_.find(request().handle.address.ToString());
    if (reached == dialler_->reached_.end() || first_paths_.size() < 2) return;
    if (first_paths_[1].peer == reached->second) std::swap(first_paths_[0], first_paths_[1]);
  }

  // A lane that is not answered.
  const DialLane& Missing() const {
    const auto missing = std::find_if(lanes_.begin(), lanes_.end(), [](auto& lane) { return !lane->answered(); });
    if (missing != lanes_.end()) return **missing;
    return health_lane_ != nullptr ? *health_lane_ : *lanes_[0];
  }

  // From now on.
  void WatchProgress() {
    Reactor& reactor = runtime()->reactor;
    reactor.CancelTimerInLoop(progress_timer_);
    progress_timer_ = reactor.AddDeadlineInLoop(kNoProgressNs, [this] {
      const DialLane& lane = Missing();
      if (finished_ || lane.path().nic == nullptr) return;
      const std::string when = absl::StrFormat("no progress for %d s, ", kNoProgressNs / kSecond);
      const std::string line = absl::StrFormat(
          "%s; gives up after %d s at the latest (TCPX_HELLO_TIMEOUT). Does a firewall, or a NAT, keep TCP from that "
          "port? TCPX_PORT_RANGE on the peer chooses the ports",
          std::string(lane.Describe(lane.Progress(when)).message()), ConnectBoundNs(runtime()->options) / kSecond);
      // That some lanes are up by now is news, though it was said that nobody answers.
      const char* const there = lanes_[0]->answered() ? "some" : "none";
      const std::string subject = absl::StrCat("slow ", request().handle.address.ToString(), " ", there);
      dialler_->log_.SlowInLoop(*request().communicator, subject, line);
    });
  }

  void LeaveHealth() {
    if (health_ == nullptr) return;
    health_lane_.reset();
    health_->waiters().GiveUpInLoop(this);
    health_->UnuseInLoop();
    health_.reset();
  }

  std::unique_ptr<SendComm> MakeComm() {
    ConnectionSetup setup;
    setup.runtime = runtime();
    setup.communicator = request().communicator;
    setup.device = request().device->index;
    setup.connection_id = dialling_.id;
    for (auto& lane : lanes_) setup.lanes.push_back(lane->TakeSocket());
    setup.taken_lanes = request().taken_lanes;
    setup.express_bytes = static_cast<uint32_t>(runtime()->options.express_bytes);
    setup.max_receives = static_cast<int>(lanes_[0]->answer().max_receives);
    if (wants_health_) setup.health = health_;
    setup.heals = wants_health_ && runtime()->options.heal && (lanes_[0]->answer().features & kFeatureHeal) != 0;
    setup.piloted = setup.heals && request().piloted && (lanes_[0]->answer().features & kFeaturePilot) != 0;
    if (setup.heals) {
      std::vector<LanePath> paths;
      for (const LaneSocket& lane : setup.lanes) paths.push_back(lane.path);
      if (setup.piloted) {
        paths.insert(paths.end(), paths_.begin() + (request().lanes - 1), paths_.end());
        setup.lanes.resize(paths.size());
      }
      setup.redialler = std::make_shared<ResumeDials>(dialling_, health_, paths);
      setup.health_redialler = std::make_shared<HealthDial>(dialling_, paths);
    }
    const Communicator& communicator = *request().communicator;
    TCPX_INFO_TO(communicator.log, "comm %x send device %d: %s, %s to %s%s%s", communicator.id, setup.device,
                 Counted(request().lanes, "lane"), setup.lanes[0].local.ToString(), setup.lanes[0].peer.ToString(),
                 TrafficClassSuffix(request().path.traffic_class), PathsText(setup.lanes));
    auto comm = std::make_unique<SendComm>(std::move(setup));
    comm->WatchInLoop();
    return comm;
  }

  // ", 1: eth1 10.0.1.1 to 10.0.1.2, 2: routed 10.0.2.1 to 10.0.2.2", where lanes go by several interfaces. After those
  // that were dialled `sockets` may have places for others.
  std::string PathsText(const std::vector<LaneSocket>& sockets) const {
    std::string text;
    if (!request().device->fused() && request().handle.nics <= 1) return text;
    for (size_t i = 1; i < lanes_.size(); ++i) {
      const Nic& nic = *lanes_[i]->path().nic;
      const std::vector<Nic>& nics = request().device->NicsFor(nic.interface.address.family());
      const bool sure = LeavesBy(sockets[i].fd.get(), nic, nics, sockets[i].peer);
      absl::StrAppend(&text, ", ", i, ": ", sure ? nic.interface.name : "routed", " ", sockets[i].local.HostString(),
                      " to ", sockets[i].peer.HostString());
    }
    return text;
  }

  void DialOthers(const Answer& answer) {
    std::vector<PeerNic> peers = answer.nics;
    const SocketAddress& dialled = lanes_[0]->path().peer;
    if (peers.empty()) peers.push_back({dialled, 0});
    const std::vector<Nic>& nics = request().device->NicsFor(dialled.family());
    paths_ = PlanLanes(nics, peers, std::max(request().lanes, request().piloted ? kLanesPilotedMax : 0) - 1);
    for (size_t i = 1; i < lanes_.size() && !finished_; ++i) lanes_[i]->DialInLoop(paths_[i - 1]);
  }

  Runtime* runtime() const { return dialling_.runtime; }
  const DialRequest& request() const { return dialling_.request; }

  Dialler* const dialler_;
  const uint64_t key_;
  DialSetup dialling_;
  std::vector<LanePath> first_paths_;  // of lane 0, the best first; two where both sides have both families
  std::vector<LanePath> paths_;        // of the lanes after it, also of those that may be opened later
  std::vector<std::unique_ptr<DialLane>> lanes_;
  std::shared_ptr<HealthPeer> health_;
  std::unique_ptr<DialLane> health_lane_;  // while this dial dials it for all
  bool wants_health_ = false;              // the peer has one too
  bool health_up_ = false;
  bool others_dialled_ = false;
  int begun_anew_ = 0;
  bool pausing_ = false;  // until it begins anew
  bool finished_ = false;
  Reactor::TimerId pause_timer_{0, 0};
  Reactor::TimerId bound_timer_{0, 0};
  Reactor::TimerId progress_timer_{0, 0};
};

Dialler::Dialler(Runtime* runtime, const Secret* secret)
    : runtime_(runtime), secret_(secret), log_(&runtime->reactor), turns_(&runtime->reactor) {}

Dialler::~Dialler() = default;

absl::StatusOr<uint64_t> Dialler::Start(const DialRequest& request) {
  uint64_t key = 0;
  absl::Status random = FillRandom(&key, sizeof(key));
  if (!random.ok()) return random;
  key |= 1;  // 0 in a handle means: not started.
  {
    MutexLock lock(mutex_);
    results_.emplace(key, nullptr);
  }
  runtime_->reactor.Post([this, key, request] {
    Dial* const raw = (dials_[key] = std::make_unique<Dial>(this, key, request)).get();
    turns_.AwaitInLoop(request.handle.address.ToString(), key, request.lanes, [raw] { raw->StartInLoop(); });
  });
  return key;
}

Dialler::Result Dialler::Take(uint64_t key) {
  MutexLock lock(mutex_);
  auto found = results_.find(key);
  if (found == results_.end()) {
    return absl::InvalidArgumentError(
        "connect: the handle was changed between two calls: pass the same buffer until it succeeds");
  }
  if (found->second.ok() && *found->second == nullptr) return nullptr;
  return std::move(results_.extract(found).mapped());
}

void Dialler::Cancel(uint64_t key) {
  runtime_->reactor.RunSync([this, key] { dials_.erase(key); });
  Result result = nullptr;
  {
    MutexLock lock(mutex_);
    auto found = results_.find(key);
    if (found == results_.end()) return;
    result = std::move(found->second);
    results_.erase(found);
  }
  if (result.ok() && *result != nullptr) (*result)->Close();
}

void Dialler::Close() {
  runtime_->reactor.RunSync([this] {
    turns_.CloseInLoop();
    dials_.clear();
  });
  std::map<uint64_t, Result> left;
  {
    MutexLock lock(mutex_);
    left.swap(results_);
  }
  for (auto& [key, result] : left) {
    if (result.ok() && *result != nullptr) (*result)->Close();
  }
}

}  // namespace tcpx
