#include "net_socket/connect/acceptor.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/counted.h"
#include "common/interfaces.h"
#include "common/log.h"
#include "common/random.h"
#include "common/socket.h"
#include "common/status.h"
#include "common/traffic_class.h"
#include "net_socket/connect/connect_bounds.h"
#include "net_socket/connect/health_dial.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/nic/nic_socket.h"
#include "net_socket/nic/routing.h"

namespace tcpx {
namespace {

// Accepted at once, before others get their turn.
constexpr int kPortion = 64;
// With no descriptor left, the listener pauses this long instead of spinning on its backlog.
constexpr int64_t kPauseNs = 100 * kMillisecond;
constexpr int64_t kWarnAgainNs = 60 * kSecond;

bool IsLimit(int err) { return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS; }

// Null: `local` is an address that the device did not have when it was found.
const Nic* FindNic(const Device& device, const SocketAddress& local) {
  for (const Nic& nic : device.NicsFor(local.family())) {
    if (nic.interface.address.SameHostAddress(local)) return &nic;
  }
  return nullptr;
}

std::string LineOf(const ConnectionSetup& setup, size_t lanes, int traffic_class) {
  return absl::StrFormat("comm %x receive device %d: %s, %s from %s%s", setup.communicator->id, setup.device,
                         Counted(static_cast<int>(lanes), "lane"), setup.lanes[0].local.ToString(),
                         setup.lanes[0].peer.ToString(), TrafficClassSuffix(traffic_class));
}

// NCCL makes one connection of each listen, and the log has a line for it. A listen for one-sided transfers can get
// many, from anyone who has the ticket: these lines are limited.
void LogAccepted(Listening* listening, std::string line) {
  if (listening->lines.May(MonotonicNanos(), &line)) TCPX_INFO_TO(listening->communicator->log, "%s", line);
}

}  // namespace

// One listening socket. It accepts in portions, one in each turn of the loop: other sockets of the reactor get theirs,
// and a backlog that strangers fill is emptied, since a peer that finds it full comes again after a second. At the
// descriptor limit a socket that has not said its hello makes room; where there is none, the listener pauses instead of
// spinning. One that something else shut down (ss -K ends listening sockets too) is left alone: epoll would report it
// for ever.
class Acceptor::Listener final : public Reactor::Handler {
 public:
  Listener(Runtime* runtime, PendingHellos* hellos, OwnedFd fd)
      : runtime_(runtime), hellos_(hellos), fd_(std::move(fd)) {}

  void StartInLoop() {
    const absl::Status watched = runtime_->reactor.WatchInLoop(fd_.get(), EPOLLIN, this);
    if (!watched.ok()) TCPX_WARN("the listening socket can't be watched: %s", watched.message());
  }
  void OnEvents(uint32_t) override {
    if (!goes_on_) AcceptSome();
  }
  void StopInLoop() {
    runtime_->reactor.CancelTimerInLoop(pause_timer_);
    runtime_->reactor.UnwatchInLoop(fd_.get());
  }

 private:
  void AcceptSome() {
    goes_on_ = false;
    for (int i = 0; i < kPortion; ++i) {
      sockaddr_storage from{};
      socklen_t length = sizeof(from);
      auto* generic = reinterpret_cast<sockaddr*>(&from);
      OwnedFd fd(accept4(fd_.get(), generic, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        const int err = errno;
        if (IsLimit(err)) LimitReached(err);
        if (err == EINVAL) WasShutDown();  // accept(2): the socket no longer listens.
        return;  // EAGAIN, or a dialler that has gone already: the next event brings the rest.
      }
      hellos_->AddInLoop(std::move(fd), SocketAddress::FromSockaddr(generic, length).value_or(SocketAddress()));
    }
    goes_on_ = true;
    runtime_->reactor.Post([self = tie_.To(this)] { self.With([](Listener* listener) { listener->AcceptSome(); }); });
  }

  void LimitReached(int err) {
    const int64_t now = MonotonicNanos();
    if (warned_ns_ == 0 || now - warned_ns_ >= kWarnAgainNs) {
      TCPX_WARN("accept: %s; new connections wait. Raise the limit of open files (ulimit -n)", ErrnoText(err));
      warned_ns_ = now;
    }
    if (hellos_->MakeRoomInLoop()) return;
    runtime_->reactor.ChangeInLoop(fd_.get(), 0);
    const auto go_on = [this] { runtime_->reactor.ChangeInLoop(fd_.get(), EPOLLIN); };
    pause_timer_ = runtime_->reactor.AddTimerInLoop(now + kPauseNs, go_on);
  }

  void WasShutDown() {
    StopInLoop();
    TCPX_WARN(
        "something outside the plugin shut down its listening socket (ss -K?): no peer can connect to it any more, "
        "and no lost lane can be resumed through it. Restart the job");
  }

  Runtime* const runtime_;
  PendingHellos* const hellos_;
  OwnedFd fd_;
  Tie tie_;
  bool goes_on_ = false;   // with the next turn
  int64_t warned_ns_ = 0;  // 0: not yet
  Reactor::TimerId pause_timer_{0, 0};
};

Acceptor::Acceptor(Runtime* runtime, const Secret* secret)
    : runtime_(runtime),
      accept_watch_(
          &runtime->reactor, AcceptBoundsOf(runtime->options),
          [this](const AcceptWait& wait) { return pending_.FindPartialInLoop(wait); }, LocalAddresses),
      rejected_(&runtime->reactor),
      hellos_(
          runtime, secret, &rejected_, [this](const Hello& hello) { return DeviceInLoop(hello) != nullptr; },
          [this](HelloSocket socket) { HelloInLoop(std::move(socket)); }),
      resumed_(runtime, &hellos_),
      pending_(runtime, &accept_watch_, &rejected_,
               [this](const ConnectionId& id, PendingConnection* pending) { HandOutInLoop(id, pending); }) {
  runtime_->health.ReportDeathsTo([this](uint64_t tag, bool waits) { pending_.HealthDiedInLoop(tag, waits); });
}

absl::StatusOr<std::shared_ptr<Listening>> Acceptor::Listen(const Device& device, std::shared_ptr<Listening> listening,
                                                            Handle* handle) {
  absl::Status random = FillRandom(listening->ticket.data(), listening->ticket.size());
  if (!random.ok()) return random;
  listening->opened = &device;
  MutexLock lock(mutex_);
  auto known = listen_addresses_.find(device.index);
  if (known == listen_addresses_.end()) {
    std::vector<OwnedFd> fds;
    auto addresses = OpenListeners(device, runtime_->options.port_range, &fds);
    if (!addresses.ok()) return addresses.status();
    for (OwnedFd& fd : fds) {
      const auto listener = std::make_shared<Listener>(runtime_, &hellos_, std::move(fd));
      runtime_->reactor.Post([this, listener] {
        listeners_.push_back(listener);
        listener->StartInLoop();
      });
    }
    known = listen_addresses_.emplace(device.index, *std::move(addresses)).first;
  }
  ListensOn(known->second, listening.get(), handle);
  listenings_[listening->ticket] = listening;
  return listening;
}

absl::StatusOr<std::unique_ptr<ReceiveComm>> Acceptor::Accept(const std::shared_ptr<Listening>& listening) {
  AcceptWait& wait = listening->wait;
  if (listening->ready_count.load(std::memory_order_acquire) == 0) {
    const absl::Status failure = AcceptWatch::Failure(&wait);
    if (!failure.ok()) return failure;
    if (!listening->communicator->one_sided) accept_watch_.Waits(std::shared_ptr<AcceptWait>(listening, &wait));
    return std::unique_ptr<ReceiveComm>();
  }
  Ready ready;
  {
    MutexLock lock(listening->mutex);
    if (listening->ready.empty()) return std::unique_ptr<ReceiveComm>();
    wait.asked_ns.store(0, std::memory_order_relaxed);
    ready = std::move(listening->ready.front());
    listening->ready.pop_front();
    listening->ready_count.fetch_sub(1, std::memory_order_relaxed);
  }
  LogAccepted(listening.get(), ready.line);
  return std::move(ready.comm);
}

void Acceptor::CloseListen(const std::shared_ptr<Listening>& listening) {
  {
    MutexLock lock(mutex_);
    listenings_.erase(listening->ticket);
  }
  listening->wait.asked_ns.store(0, std::memory_order_relaxed);
  std::deque<Ready> left;
  {
    MutexLock lock(listening->mutex);
    listening->closed = true;
    left.swap(listening->ready);
  }
  for (Ready& ready : left) ready.comm->Close();
  runtime_->reactor.Post([this, listening] { pending_.DropOfInLoop(listening); });
}

void Acceptor::Close() {
  runtime_->reactor.RunSync([this] {
    for (const auto& listener : listeners_) listener->StopInLoop();
    listeners_.clear();
    runtime_->health.ReportDeathsTo(nullptr);
    hellos_.CloseInLoop();
    accept_watch_.CloseInLoop();
    resumed_.CloseInLoop();
    rejected_.CloseInLoop();
    pending_.CloseInLoop();
  });
}

std::shared_ptr<Listening> Acceptor::Find(const Ticket& ticket) {
  MutexLock lock(mutex_);
  auto found = listenings_.find(ticket);
  return found == listenings_.end() ? nullptr : found->second;
}

// A stranger without such a ticket costs only this.
const Device* Acceptor::DeviceInLoop(const Hello& hello) {
  const std::shared_ptr<Listening> listening = Find(hello.ticket);
  return listening == nullptr ? resumed_.KnownInLoop(hello) : listening->opened;
}

HelloStatus Acceptor::AdmitInLoop(const Hello& hello, const SocketAddress& from, PendingConnection** pending) {
  if (hello.kind == HelloKind::kHealth) {
    if (DeviceInLoop(hello) == nullptr) return HelloStatus::kUnknownTicket;
    return pending_.AdmitHealthInLoop(HealthTag(hello.connection_id));
  }
  if (hello.kind != HelloKind::kLane) return HelloStatus::kUnknownKind;
  const std::shared_ptr<Listening> listening = Find(hello.ticket);
  return listening == nullptr ? HelloStatus::kUnknownTicket : pending_.AdmitInLoop(hello, from, listening, pending);
}

// `device`: null if nobody listens now.
LaneSocket Acceptor::ConfigureInLoop(int fd, const Hello& hello, const Device* device) {
  LaneSocket lane;
  lane.local = LocalAddress(fd).value_or(SocketAddress());
  lane.peer = PeerAddress(fd).value_or(SocketAddress());
  const Nic* const nic = device == nullptr ? nullptr : FindNic(*device, lane.local);
  PathFacts facts;
  facts.nic_ties = nic != nullptr && nic->ties;
  facts.same_subnet = nic != nullptr && InSubnet(nic->interface, lane.peer);
  facts.same_host = lane.local.SameHostAddress(lane.peer);
  facts.family = lane.local.family();
  facts.kind = hello.lane > 0 ? LaneKind::kBulk : LaneKind::kFirst;
  facts.traffic_class = hello.traffic_class;
  lane.profile = MakePathProfile(runtime_->options, facts);
  if (lane.profile.ways.front() == LeaveBy::kDevice) TieToNic(fd, *nic);
  ConfigureLane(fd, lane.profile, runtime_->lane_notes);
  return lane;
}

void Acceptor::HelloInLoop(HelloSocket socket) {
  if (HasEnded(socket.fd.get())) return rejected_.NoteInLoop(HelloStatus::kLeft, socket.from);
  const Hello& hello = socket.hello();
  if (hello.kind == HelloKind::kResume && runtime_->options.heal) {
    const HelloStatus status = resumed_.AdmitInLoop(hello);
    if (status == HelloStatus::kAccepted) (void)ConfigureInLoop(socket.fd.get(), hello, resumed_.KnownInLoop(hello));
    return resumed_.HelloInLoop(std::move(socket), status);
  }
  PendingConnection* pending = nullptr;
  Answer answer;
  const uint64_t heals = runtime_->options.heal ? kFeatureHeal | kFeatureHealHealth | kFeaturePilot : 0;
  answer.features = hello.features & (kFeatureHealth | kFeatureEstablished | heals);
  answer.status = AdmitInLoop(hello, socket.from, &pending);
  // Before the answer, which bears the traffic class.
  LaneSocket lane;
  if (answer.status == HelloStatus::kAccepted) {
    lane = ConfigureInLoop(socket.fd.get(), hello, DeviceInLoop(hello));
    // Before the answer: what is said on the old one after it would be lost.
    if (hello.kind == HelloKind::kHealth) runtime_->health.LetGoInLoop(HealthTag(hello.connection_id));
  }
  if (pending != nullptr && hello.lane == 0) answer.nics = OfFamily(pending->listening()->nics, lane.local.family());
  if (pending != nullptr) answer.max_receives = static_cast<uint32_t>(pending->listening()->max_receives);
  if (!hellos_.AnswerInLoop(socket, answer)) return pending_.DropIfEmptyInLoop(hello.connection_id);
  lane.fd = std::move(socket.fd);
  lane.seals = socket.handshake.TakeSeals();
  if (pending != nullptr) return pending_.AddLaneInLoop(hello, std::move(lane), pending);
  const uint64_t tag = HealthTag(hello.connection_id);
  runtime_->health.AcceptInLoop(tag, std::move(lane.fd), HealthSettingsFor(runtime_->options, hello.features),
                                std::move(lane.seals));
  pending_.HealthCameInLoop(tag);
}

void Acceptor::HandOutInLoop(const ConnectionId& id, PendingConnection* pending) {
  const std::shared_ptr<Listening>& of = pending->listening();
  accept_watch_.CameInLoop(&of->wait, pending->from(), true);
  ConnectionSetup setup;
  setup.runtime = runtime_;
  setup.communicator = of->communicator;
  setup.device = of->opened->index;
  setup.connection_id = id;
  setup.lanes = pending->TakeLanes();
  setup.taken_lanes = runtime_->lane_budget->Take(static_cast<int>(setup.lanes.size()) - 1);
  setup.express_bytes = pending->hello().express_bytes;
  setup.max_receives = of->max_receives;
  if (setup.communicator->one_sided) setup.apart = std::make_unique<std::atomic<bool>>(true);
  setup.health = pending->TakeHealth();
  setup.heals = setup.health != nullptr && runtime_->options.heal && (pending->hello().features & kFeatureHeal) != 0;
  const bool heals = setup.heals;
  const size_t lanes = setup.lanes.size();
  setup.piloted =
      heals && (pending->hello().features & kFeaturePilot) != 0 && LanesMayBePiloted(static_cast<int>(lanes));
  if (setup.piloted) setup.lanes.resize(kLanesPilotedMax);
  ResumedLanes::End end{of->ticket, of->opened, lanes, pending_.MayOpen(pending->place),
                        std::vector<uint32_t>(setup.lanes.size())};
  Ready ready{id, nullptr, pending->speaks(), LineOf(setup, lanes, pending->hello().traffic_class),
              std::move(pending->place)};
  ready.comm = std::make_unique<ReceiveComm>(std::move(setup));
  ready.comm->WatchInLoop();
  of->connections[id] = end.taker = ready.comm->taker();
  if (heals) resumed_.EnterInLoop(id, std::move(end));
  {
    MutexLock lock(of->mutex);
    if (!of->closed) {
      of->ready.push_back(std::move(ready));
      of->ready_count.fetch_add(1, std::memory_order_release);
      return;
    }
  }
  ready.comm->Close();
}

}  // namespace tcpx
