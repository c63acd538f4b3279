#include "net_socket/dialler.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/random.h"
#include "common/socket.h"
#include "common/status.h"
#include "common/traffic_class.h"
#include "net_socket/lane_plan.h"
#include "net_socket/lane_socket.h"
#include "net_socket/nic_socket.h"

namespace tcpx {

// All lanes of one connect.
class Dialler::Dial final : private Health::Waiter {
 public:
  Dial(Dialler* dialler, uint64_t key, DialRequest request, std::shared_ptr<Result> result);
  ~Dial() override;

  void StartInLoop();
  void LaneAnswered(const Lane& lane);
  // Ends the dial; it is destroyed soon after.
  void Finish(absl::Status status);
  bool finished() const { return finished_; }

  Runtime* runtime() { return dialler_->runtime_; }
  const DialRequest& request() const { return request_; }
  const std::array<uint8_t, 16>& connection_id() const { return connection_id_; }

 private:
  void DialHealthInLoop() override;
  void HealthUpInLoop() override;
  void FinishIfComplete();
  void LeaveHealth();
  std::unique_ptr<SendComm> MakeComm();
  void DialOthers(const Answer& answer);

  Dialler* const dialler_;
  const uint64_t key_;
  const DialRequest request_;
  const std::shared_ptr<Result> result_;
  std::array<uint8_t, 16> connection_id_{};
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::shared_ptr<Health> health_;
  std::unique_ptr<Lane> health_lane_;  // while this dial dials it for all
  bool wants_health_ = false;          // the peer has one too
  bool health_up_ = false;
  int answered_ = 0;
  bool finished_ = false;
};

// One lane being dialled.
class Dialler::Lane final : public Reactor::Handler {
 public:
  Lane(Dial* dial, int index) : dial_(dial), index_(index) {}
  ~Lane() override { Drop(); }

  void DialInLoop(const LanePath& path) {
    path_ = path;
    DialInLoop();
  }
  void OnEvents(uint32_t events) override;
  LaneSocket TakeSocket();
  int index() const { return index_; }
  const LanePath& path() const { return path_; }
  const Answer& answer() const { return answer_; }

  // In place of a lane's index: the health socket.
  static constexpr int kHealth = -1;

 private:
  enum class Step { kIdle, kDialling, kGreeting, kAnswered };

  void DialInLoop();
  absl::Status Open();
  void Dialled();
  void ReadAnswer();
  void DecodeArrived();
  void Answered();
  void Retry(absl::Status why);
  // Ends the dial with what this lane met.
  void GiveUp(const absl::Status& why);
  void Drop();
  void SetDeadline(int64_t after_ns);
  Reactor& reactor() { return dial_->runtime()->reactor; }

  Dial* const dial_;
  const int index_;
  LanePath path_;
  Step step_ = Step::kIdle;
  OwnedFd fd_;
  Reactor::TimerId timer_{0, 0};
  int attempts_ = 0;
  Answer answer_;
  int nics_ = -1;  // that follow the fixed part; -1: not known yet
  size_t have_ = 0;
  char bytes_[kAnswerBytesMax];
};

void Dialler::Lane::SetDeadline(int64_t after_ns) {
  reactor().CancelTimerInLoop(timer_);
  timer_ = reactor().AddTimerInLoop(MonotonicNanos() + after_ns, [this] {
    Retry(absl::UnavailableError(step_ == Step::kGreeting ? "connected, but the peer does not answer the hello"
                                                          : "connect: timed out"));
  });
}

absl::Status Dialler::Lane::Open() {
  const DialRequest& request = dial_->request();
  SocketAddress peer = path_.peer;
  auto fd = StreamSocket(peer.family());
  if (!fd.ok()) return fd.status();
  fd_ = *std::move(fd);
  LaneTraits traits;
  traits.family = peer.family();
  traits.bulk = index_ > 0;
  traits.same_host = request.same_host;
  traits.traffic_class = request.traffic_class;
  traits.notes = dial_->runtime()->lane_notes;
  traits.sndbuf = request.sndbuf;
  ConfigureLane(fd_.get(), dial_->runtime()->options, traits);
  absl::Status bound = BindToNic(fd_.get(), *path_.nic, peer, request.same_host);
  if (!bound.ok()) return bound;
  if (peer.IsLinkLocal()) peer.set_scope(path_.nic->interface.index);
  if (connect(fd_.get(), peer.sockaddr(), peer.length()) != 0 && errno != EINPROGRESS)
    return ErrnoStatus(errno, "connect");
  return absl::OkStatus();
}

void Dialler::Lane::DialInLoop() {
  step_ = Step::kDialling;
  have_ = 0;
  nics_ = -1;
  absl::Status opened = Open();
  if (opened.ok()) opened = reactor().WatchInLoop(fd_.get(), EPOLLOUT, this);
  if (!opened.ok()) {
    Retry(opened);
    return;
  }
  SetDeadline(dial_->runtime()->options.hello_timeout_ns);
}

void Dialler::Lane::OnEvents(uint32_t) {
  if (step_ == Step::kDialling) {
    Dialled();
  } else if (step_ == Step::kGreeting) {
    ReadAnswer();
  }
}

void Dialler::Lane::Dialled() {
  absl::Status connected = TakeSocketError(fd_.get(), "connect");
  if (!connected.ok()) {
    Retry(connected);
    return;
  }
  const DialRequest& request = dial_->request();
  Hello hello;
  hello.ticket = request.handle.ticket;
  hello.connection_id = dial_->connection_id();
  hello.kind = index_ == kHealth ? HelloKind::kHealth : HelloKind::kLane;
  hello.features = kFeatureHealth;
  hello.lane = static_cast<uint16_t>(std::max(index_, 0));
  hello.lanes = static_cast<uint16_t>(request.lanes);
  hello.express_bytes = static_cast<uint32_t>(dial_->runtime()->options.express_bytes);
  hello.traffic_class = request.traffic_class;
  char bytes[kHelloBytes];
  EncodeHello(hello, bytes);
  if (send(fd_.get(), bytes, kHelloBytes, MSG_DONTWAIT | MSG_NOSIGNAL) != static_cast<ssize_t>(kHelloBytes)) {
    Retry(ErrnoStatus(errno, "send of the hello"));
    return;
  }
  step_ = Step::kGreeting;
  reactor().ChangeInLoop(fd_.get(), EPOLLIN | EPOLLRDHUP);
  SetDeadline(dial_->runtime()->options.hello_timeout_ns);
}

void Dialler::Lane::ReadAnswer() {
  // Never a byte more than the answer: what follows belongs to the comm.
  const size_t want = kAnswerFixedBytes + (nics_ < 0 ? 0 : static_cast<size_t>(nics_) * kPeerNicBytes);
  const ssize_t got = recv(fd_.get(), bytes_ + have_, want - have_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got <= 0) {
    Retry(got < 0 ? ErrnoStatus(errno, "receive of the answer")
                  : absl::UnavailableError("the peer closed the connection during the hello"));
    return;
  }
  have_ += static_cast<size_t>(got);
  if (have_ == want) DecodeArrived();
}

void Dialler::Lane::DecodeArrived() {
  const char* wrong = nullptr;
  if (nics_ < 0) {
    wrong = DecodeAnswer(bytes_, &answer_, &nics_);
    if (wrong == nullptr && nics_ > 0) return;
  } else {
    wrong = DecodeAnswerNics(bytes_ + kAnswerFixedBytes, nics_, &answer_);
  }
  if (wrong != nullptr) {
    GiveUp(absl::UnavailableError(absl::StrCat("the answer makes no sense: ", wrong)));
  } else {
    Answered();
  }
}

void Dialler::Lane::Answered() {
  reactor().CancelTimerInLoop(timer_);
  if (answer_.status == HelloStatus::kBusy) {
    Retry(absl::UnavailableError(HelloStatusText(answer_.status)));
    return;
  }
  if (answer_.status != HelloStatus::kAccepted) {
    GiveUp(absl::UnavailableError(HelloStatusText(answer_.status)));
    return;
  }
  absl::Status sane = CheckPeerNics(dial_->request().handle.address, answer_.nics);
  if (!sane.ok()) {
    GiveUp(sane);
    return;
  }
  reactor().UnwatchInLoop(fd_.get());
  step_ = Step::kAnswered;
  dial_->LaneAnswered(*this);
}

void Dialler::Lane::Retry(absl::Status why) {
  Drop();
  const Options& options = dial_->runtime()->options;
  if (!absl::IsUnavailable(why) || attempts_ >= options.retry_count) {
    GiveUp(why);
    return;
  }
  ++attempts_;
  timer_ = reactor().AddTimerInLoop(MonotonicNanos() + attempts_ * options.retry_sleep_ns, [this] { DialInLoop(); });
}

void Dialler::Lane::GiveUp(const absl::Status& why) {
  const Interface& interface = path_.nic->interface;
  dial_->Finish(
      absl::Status(why.code(), absl::StrFormat("connect to %s through %s (%s): %s", path_.peer.ToString(),
                                               interface.name, interface.address.HostString(), why.message())));
}

void Dialler::Lane::Drop() {
  reactor().CancelTimerInLoop(timer_);
  if (!fd_.valid()) return;
  reactor().UnwatchInLoop(fd_.get());
  fd_.reset();
  step_ = Step::kIdle;
}

LaneSocket Dialler::Lane::TakeSocket() {
  LaneSocket socket;
  socket.local = LocalAddress(fd_.get()).value_or(SocketAddress());
  socket.peer = PeerAddress(fd_.get()).value_or(SocketAddress());
  socket.fd = std::move(fd_);
  return socket;
}

Dialler::Dial::Dial(Dialler* dialler, uint64_t key, DialRequest request, std::shared_ptr<Result> result)
    : dialler_(dialler), key_(key), request_(std::move(request)), result_(std::move(result)) {}

Dialler::Dial::~Dial() { LeaveHealth(); }

void Dialler::Dial::LeaveHealth() {
  if (health_ == nullptr) return;
  health_lane_.reset();
  health_->GiveUpInLoop(this);
  health_->UnuseInLoop();
  health_.reset();
}

void Dialler::Dial::StartInLoop() {
  absl::Status random = FillRandom(connection_id_.data(), connection_id_.size());
  if (!random.ok()) {
    Finish(random);
    return;
  }
  health_ = runtime()->health.UseDialledInLoop(request_.device->index, request_.handle.address);
  const uint64_t tag = health_->tag();
  std::memcpy(connection_id_.data(), &tag, sizeof(tag));
  for (int i = 0; i < request_.lanes; ++i) lanes_.push_back(std::make_unique<Lane>(this, i));
  const SocketAddress& peer = request_.handle.address;
  lanes_[0]->DialInLoop({&NicTowards(request_.device->nics, peer), peer});
}

void Dialler::Dial::LaneAnswered(const Lane& lane) {
  if (lane.index() == Lane::kHealth) {
    health_->UpInLoop(health_lane_->TakeSocket().fd, runtime()->options.peer_timeout_ns);
    return;
  }
  ++answered_;
  if (lane.index() == 0) {
    wants_health_ = (lane.answer().features & kFeatureHealth) != 0;
    if (wants_health_) health_->AwaitInLoop(this);
    DialOthers(lane.answer());
  }
  FinishIfComplete();
}

void Dialler::Dial::DialHealthInLoop() {
  health_lane_ = std::make_unique<Lane>(this, Lane::kHealth);
  health_lane_->DialInLoop(lanes_[0]->path());
}

void Dialler::Dial::HealthUpInLoop() {
  health_up_ = true;
  FinishIfComplete();
}

void Dialler::Dial::FinishIfComplete() {
  if (finished_ || answered_ < request_.lanes || (wants_health_ && !health_up_)) return;
  const bool broken = wants_health_ && !health_->up_in_loop();
  Finish(broken ? absl::UnavailableError("the health socket to the peer broke") : absl::OkStatus());
}

void Dialler::Dial::DialOthers(const Answer& answer) {
  std::vector<PeerNic> peers = answer.nics;
  if (peers.empty()) peers.push_back({request_.handle.address, 0});
  const std::vector<LanePath> paths = PlanLanes(request_.device->nics, peers, request_.lanes - 1);
  for (size_t i = 1; i < lanes_.size() && !finished_; ++i) lanes_[i]->DialInLoop(paths[i - 1]);
}

std::unique_ptr<SendComm> Dialler::Dial::MakeComm() {
  ConnectionSetup setup;
  setup.runtime = runtime();
  setup.comm_id = request_.comm_id;
  setup.log = request_.log;
  setup.device = request_.device->index;
  setup.connection_id = connection_id_;
  for (auto& lane : lanes_) setup.lanes.push_back(lane->TakeSocket());
  setup.express_bytes = static_cast<uint32_t>(runtime()->options.express_bytes);
  setup.max_receives = static_cast<int>(lanes_[0]->answer().max_receives);
  setup.same_host = request_.same_host;
  if (wants_health_) setup.health = health_;
  setup.group = request_.group;
  setup.repeat_warnings = request_.repeat_warnings;
  TCPX_INFO_TO(setup.log, "comm %x send device %d: %d lanes, %s to %s%s", setup.comm_id, setup.device,
               static_cast<int>(setup.lanes.size()), setup.lanes[0].local.ToString(), setup.lanes[0].peer.ToString(),
               TrafficClassSuffix(request_.traffic_class));
  for (size_t i = 1; i < lanes_.size() && (request_.device->fused() || request_.handle.nics > 1); ++i) {
    TCPX_INFO_TO(setup.log, "comm %x send device %d: lane %d through %s, %s to %s", setup.comm_id, setup.device,
                 static_cast<int>(i), lanes_[i]->path().nic->interface.name, setup.lanes[i].local.ToString(),
                 setup.lanes[i].peer.ToString());
  }
  auto comm = std::make_unique<SendComm>(std::move(setup));
  comm->WatchInLoop();
  return comm;
}

void Dialler::Dial::Finish(absl::Status status) {
  if (finished_) return;
  finished_ = true;
  std::unique_ptr<SendComm> comm;
  if (status.ok()) {
    comm = MakeComm();
  } else {
    TCPX_WARN_TO(request_.log, "%s", std::string(status.message()));
  }
  {
    std::lock_guard<std::mutex> lock(result_->mutex);
    result_->status = std::move(status);
    result_->comm = std::move(comm);
    result_->done = true;
  }
  // Not destroyed here: a lane of this dial is still on the stack.
  dialler_->runtime_->reactor.AddTimerInLoop(0, [dialler = dialler_, key = key_] { dialler->dials_.erase(key); });
}

Dialler::Dialler(Runtime* runtime) : runtime_(runtime) {}

Dialler::~Dialler() = default;

absl::StatusOr<uint64_t> Dialler::Start(const DialRequest& request) {
  uint64_t key = 0;
  absl::Status random = FillRandom(&key, sizeof(key));
  if (!random.ok()) return random;
  key |= 1;  // 0 in a handle means: not started.
  auto result = std::make_shared<Result>();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    results_[key] = result;
  }
  runtime_->reactor.Post([this, key, request, result] {
    auto dial = std::make_unique<Dial>(this, key, request, result);
    Dial* raw = dial.get();
    dials_[key] = std::move(dial);
    raw->StartInLoop();
  });
  return key;
}

absl::StatusOr<std::unique_ptr<SendComm>> Dialler::Take(uint64_t key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = results_.find(key);
  if (found == results_.end()) {
    return absl::InvalidArgumentError(
        "connect: the handle was changed between two calls: pass the same buffer until it succeeds");
  }
  std::shared_ptr<Result> result = found->second;
  std::lock_guard<std::mutex> result_lock(result->mutex);
  if (!result->done) return std::unique_ptr<SendComm>();
  results_.erase(found);
  if (!result->status.ok()) return result->status;
  return std::move(result->comm);
}

void Dialler::Cancel(uint64_t key) {
  std::shared_ptr<Result> result;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = results_.find(key);
    if (found == results_.end()) return;
    result = found->second;
    results_.erase(found);
  }
  runtime_->reactor.RunSync([this, key] { dials_.erase(key); });
  if (result->comm != nullptr) result->comm->Close();
}

void Dialler::Close() {
  std::vector<uint64_t> keys;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [key, result] : results_) keys.push_back(key);
  }
  for (uint64_t key : keys) Cancel(key);
  runtime_->reactor.RunSync([this] { dials_.clear(); });
}

}  // namespace tcpx
