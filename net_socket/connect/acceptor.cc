#include "net_socket/connect/acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/random.h"
#include "common/socket.h"
#include "common/traffic_class.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/nic/nic_socket.h"
#include "net_socket/nic/shared_subnet.h"

namespace tcpx {
namespace {

// Lanes that wait for a retry of the dialler's must not be given up before it gives up.
int64_t PatienceNs(const Options& options) {
  const int64_t retries_ns = int64_t{options.retry_count} * (options.retry_count + 1) / 2 * options.retry_sleep_ns;
  return 2 * options.hello_timeout_ns + retries_ns;
}

// Null: `local` is an address that the device did not have when it was found.
const Nic* FindNic(const Device& device, const SocketAddress& local) {
  for (const Nic& nic : device.nics) {
    if (nic.interface.address.SameHostAddress(local)) return &nic;
  }
  return nullptr;
}

}  // namespace

// Ends a pending connection with the first of its lanes: a dialler that died half-way costs nothing.
class Acceptor::PendingLane final : public Reactor::Handler {
 public:
  PendingLane(Acceptor* acceptor, const ConnectionId& id) : acceptor_(acceptor), id_(id) {}
  void OnEvents(uint32_t) override { acceptor_->DropPendingInLoop(ConnectionId(id_)); }

 private:
  Acceptor* const acceptor_;
  const ConnectionId id_;
};

// A connection of which lanes, or the health socket, are missing.
struct Acceptor::Pending {
  bool complete(bool has_health) const {
    return present == hello.lanes && (has_health || (hello.features & kFeatureHealth) == 0);
  }

  std::shared_ptr<Listening> listening;
  Hello hello;  // of lane 0
  std::vector<LaneSocket> lanes;
  std::unique_ptr<PendingLane> watch;
  int present = 0;
  Reactor::TimerId timer;
};

Acceptor::Acceptor(Runtime* runtime, const Secret* secret)
    : runtime_(runtime),
      rejected_(&runtime->reactor),
      hellos_(runtime, secret, &rejected_, [this](HelloSocket socket) { HelloInLoop(std::move(socket)); }) {}

Acceptor::~Acceptor() = default;

void Acceptor::Watch(OwnedFd fd) {
  auto listener =
      std::make_shared<std::unique_ptr<Listener>>(std::make_unique<Listener>(runtime_, &hellos_, std::move(fd)));
  runtime_->reactor.Post([this, listener] {
    Listener* raw = listener->get();
    listeners_.push_back(std::move(*listener));
    absl::Status watched = runtime_->reactor.WatchInLoop(raw->fd(), EPOLLIN, raw);
    if (!watched.ok()) TCPX_WARN("the listening socket can't be watched: %s", std::string(watched.message()));
  });
}

absl::StatusOr<std::vector<PeerNic>> Acceptor::OpenListeners(const Device& device) {
  std::vector<PeerNic> addresses;
  std::vector<OwnedFd> fds;
  for (const Nic& nic : device.nics) {
    auto fd = ListenOnNic(nic, device.fused() && nic.ties, runtime_->options.port_range);
    if (!fd.ok()) return fd.status();
    auto address = LocalAddress(fd->get());
    if (!address.ok()) return address.status();
    addresses.push_back({*address, static_cast<uint32_t>(nic.hardware.speed_mbps)});
    fds.push_back(*std::move(fd));
    TCPX_INFO("device %d: listens on %s", device.index, address->ToString());
  }
  for (OwnedFd& fd : fds) Watch(std::move(fd));
  return addresses;
}

absl::StatusOr<std::shared_ptr<Listening>> Acceptor::Listen(const Device& device, std::shared_ptr<Listening> listening,
                                                            Handle* handle) {
  absl::Status random = FillRandom(listening->ticket.data(), listening->ticket.size());
  if (!random.ok()) return random;
  listening->device = device.index;
  listening->opened = &device;
  listening->max_receives = device.max_receives;
  MutexLock lock(mutex_);
  auto known = listen_addresses_.find(device.index);
  if (known == listen_addresses_.end()) {
    auto addresses = OpenListeners(device);
    if (!addresses.ok()) return addresses.status();
    known = listen_addresses_.emplace(device.index, *std::move(addresses)).first;
  }
  listening->nics = known->second;
  handle->address = listening->nics[0].address;
  handle->nics = static_cast<uint16_t>(listening->nics.size());
  handle->ticket = listening->ticket;
  listenings_[listening->ticket] = listening;
  return listening;
}

std::unique_ptr<ReceiveComm> Acceptor::Accept(Listening* listening) {
  if (listening->ready_count.load(std::memory_order_acquire) == 0) return nullptr;
  MutexLock lock(listening->mutex);
  if (listening->ready.empty()) return nullptr;
  auto comm = std::move(listening->ready.front());
  listening->ready.pop_front();
  listening->ready_count.fetch_sub(1, std::memory_order_relaxed);
  return comm;
}

void Acceptor::CloseListen(const std::shared_ptr<Listening>& listening) {
  {
    MutexLock lock(mutex_);
    listenings_.erase(listening->ticket);
  }
  std::deque<std::unique_ptr<ReceiveComm>> left;
  {
    MutexLock lock(listening->mutex);
    listening->closed = true;
    left.swap(listening->ready);
  }
  for (auto& comm : left) comm->Close();
  runtime_->reactor.Post([this, listening] {
    std::vector<ConnectionId> gone;
    for (auto& [id, pending] : pending_) {
      if (pending->listening == listening) gone.push_back(id);
    }
    for (const ConnectionId& id : gone) DropPendingInLoop(id);
  });
}

void Acceptor::Close() {
  runtime_->reactor.RunSync([this] {
    for (auto& listener : listeners_) runtime_->reactor.UnwatchInLoop(listener->fd());
    listeners_.clear();
    hellos_.CloseInLoop();
    rejected_.CloseInLoop();
    while (!pending_.empty()) DropPendingInLoop(ConnectionId(pending_.begin()->first));
  });
}

std::shared_ptr<Listening> Acceptor::Find(const Ticket& ticket) {
  MutexLock lock(mutex_);
  auto found = listenings_.find(ticket);
  return found == listenings_.end() ? nullptr : found->second;
}

void Acceptor::DropPendingInLoop(const ConnectionId& id) {
  auto found = pending_.find(id);
  runtime_->reactor.CancelTimerInLoop(found->second->timer);
  for (LaneSocket& lane : found->second->lanes) {
    if (lane.fd.valid()) runtime_->reactor.UnwatchInLoop(lane.fd.get());
  }
  pending_.erase(found);
}

HelloStatus Acceptor::AdmitHealthInLoop(const Hello& hello) {
  return Find(hello.ticket) == nullptr ? HelloStatus::kUnknownTicket : HelloStatus::kAccepted;
}

HelloStatus Acceptor::AdmitInLoop(const Hello& hello, Pending** out) {
  std::shared_ptr<Listening> listening = Find(hello.ticket);
  if (listening == nullptr) return HelloStatus::kUnknownTicket;
  if (!IsTrafficClass(hello.traffic_class)) return HelloStatus::kBadTrafficClass;
  if (hello.lanes == 0 || hello.lanes > kLanesMax || hello.lane >= hello.lanes) return HelloStatus::kBadLane;
  auto found = pending_.find(hello.connection_id);
  if (found == pending_.end()) {
    if (listening->connections.contains(hello.connection_id)) return HelloStatus::kDuplicateLane;
    if (hello.lane != 0) return HelloStatus::kBadLane;
    listening->connections.insert(hello.connection_id);
    auto pending = std::make_unique<Pending>();
    pending->listening = listening;
    pending->hello = hello;
    pending->lanes.resize(hello.lanes);
    pending->timer = runtime_->reactor.AddTimerInLoop(MonotonicNanos() + PatienceNs(runtime_->options),
                                                      [this, id = hello.connection_id] { DropPendingInLoop(id); });
    found = pending_.emplace(hello.connection_id, std::move(pending)).first;
  }
  Pending* pending = found->second.get();
  if (pending->listening != listening || pending->hello.lanes != hello.lanes) return HelloStatus::kBadLane;
  if (pending->lanes[hello.lane].fd.valid()) return HelloStatus::kDuplicateLane;
  *out = pending;
  return HelloStatus::kAccepted;
}

LaneSocket Acceptor::ConfigureInLoop(int fd, const Hello& hello) {
  LaneSocket lane;
  lane.local = LocalAddress(fd).value_or(SocketAddress());
  lane.peer = PeerAddress(fd).value_or(SocketAddress());
  const std::shared_ptr<Listening> listening = Find(hello.ticket);
  const Nic* const nic = listening == nullptr ? nullptr : FindNic(*listening->opened, lane.local);
  PathFacts facts;
  facts.nic_ties = nic != nullptr && nic->ties;
  facts.same_subnet = nic != nullptr && InSubnet(nic->interface, lane.peer);
  facts.same_host = lane.local.SameHostAddress(lane.peer);
  facts.family = lane.local.family();
  facts.kind = hello.lane > 0 ? LaneKind::kBulk : LaneKind::kFirst;
  facts.traffic_class = hello.traffic_class;
  lane.profile = MakePathProfile(runtime_->options, facts);
  if (lane.profile.ways.front() == LeaveBy::kDevice) TieAccepted(fd, *nic);
  ConfigureLane(fd, lane.profile, runtime_->lane_notes);
  return lane;
}

void Acceptor::HelloInLoop(HelloSocket socket) {
  const Hello& hello = socket.hello();
  Pending* pending = nullptr;
  Answer answer;
  answer.features = hello.features & kFeatureHealth;
  if (hello.kind == HelloKind::kLane) {
    answer.status = AdmitInLoop(hello, &pending);
  } else {
    answer.status = hello.kind == HelloKind::kHealth ? AdmitHealthInLoop(hello) : HelloStatus::kUnknownKind;
  }
  // Before the answer, which bears the traffic class.
  LaneSocket lane;
  if (answer.status == HelloStatus::kAccepted) lane = ConfigureInLoop(socket.fd.get(), hello);
  if (pending != nullptr && hello.lane == 0) answer.nics = pending->listening->nics;
  if (pending != nullptr) answer.max_receives = static_cast<uint32_t>(pending->listening->max_receives);
  if (!hellos_.AnswerInLoop(socket, answer)) return;
  lane.fd = std::move(socket.fd);
  if (pending == nullptr) {
    AddHealthInLoop(hello, std::move(lane.fd));
  } else {
    AddLaneInLoop(hello, std::move(lane), pending);
  }
}

void Acceptor::AddHealthInLoop(const Hello& hello, OwnedFd fd) {
  const uint64_t tag = HealthTag(hello.connection_id);
  runtime_->health.AcceptInLoop(tag, std::move(fd), runtime_->options.peer_timeout_ns);
  std::weak_ptr<Health> health = runtime_->health.FindAcceptedInLoop(tag);
  runtime_->reactor.AddTimerInLoop(MonotonicNanos() + PatienceNs(runtime_->options),
                                   [this, health] { runtime_->health.DropUnusedInLoop(health.lock()); });
  std::vector<ConnectionId> complete;
  for (auto& [id, pending] : pending_) {
    if (HealthTag(id) == tag && pending->complete(true)) complete.push_back(id);
  }
  for (const ConnectionId& id : complete) CompleteInLoop(id);
}

void Acceptor::AddLaneInLoop(const Hello& hello, LaneSocket socket, Pending* pending) {
  LaneSocket& lane = pending->lanes[hello.lane];
  lane = std::move(socket);
  ++pending->present;
  if (pending->complete(runtime_->health.FindAcceptedInLoop(HealthTag(hello.connection_id)) != nullptr)) {
    CompleteInLoop(hello.connection_id);
    return;
  }
  if (pending->watch == nullptr) pending->watch = std::make_unique<PendingLane>(this, hello.connection_id);
  // Edge-triggered and without EPOLLIN: an end only.
  (void)runtime_->reactor.WatchInLoop(lane.fd.get(), EPOLLRDHUP | EPOLLET, pending->watch.get());
}

void Acceptor::CompleteInLoop(const ConnectionId& id) {
  auto found = pending_.find(id);
  std::unique_ptr<Pending> pending = std::move(found->second);
  runtime_->reactor.CancelTimerInLoop(pending->timer);
  for (LaneSocket& lane : pending->lanes) runtime_->reactor.UnwatchInLoop(lane.fd.get());
  pending_.erase(found);
  ConnectionSetup setup;
  setup.runtime = runtime_;
  setup.communicator = pending->listening->communicator;
  setup.device = pending->listening->device;
  setup.connection_id = id;
  setup.lanes = std::move(pending->lanes);
  setup.express_bytes = pending->hello.express_bytes;
  setup.max_receives = pending->listening->max_receives;
  if ((pending->hello.features & kFeatureHealth) != 0)
    setup.health = runtime_->health.FindAcceptedInLoop(HealthTag(id));
  TCPX_INFO_TO(setup.communicator->log, "comm %x receive device %d: %d lanes, %s from %s%s", setup.communicator->id,
               setup.device, static_cast<int>(setup.lanes.size()), setup.lanes[0].local.ToString(),
               setup.lanes[0].peer.ToString(), TrafficClassSuffix(pending->hello.traffic_class));
  auto comm = std::make_unique<ReceiveComm>(std::move(setup));
  comm->WatchInLoop();
  Listening& listening = *pending->listening;
  {
    MutexLock lock(listening.mutex);
    if (!listening.closed) {
      listening.ready.push_back(std::move(comm));
      listening.ready_count.fetch_add(1, std::memory_order_release);
      return;
    }
  }
  comm->Close();
}

}  // namespace tcpx
