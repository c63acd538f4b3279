#include "net_socket/connect/pending_connection.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "common/socket.h"

namespace tcpx {

// A lane that waits for the rest.
class PendingConnection::Lane final : public Reactor::Handler {
 public:
  Lane(PendingConnection* connection, const Hello& hello, LaneSocket socket)
      : reactor_(connection->reactor_), stirred_(connection->stirred_), hello_(hello), socket_(std::move(socket)) {
    // Edge-triggered. Only lane 0's dialler has anything to say, and an older one would send what is the comm's.
    const bool speaks = hello.lane == 0 && (hello.features & kFeatureEstablished) != 0;
    const uint32_t events = EPOLLRDHUP | EPOLLET | (speaks ? uint32_t{EPOLLIN} : 0);
    (void)reactor_->WatchInLoop(socket_.fd.get(), events, this);
  }
  ~Lane() override {
    if (socket_.fd.valid()) reactor_->UnwatchInLoop(socket_.fd.get());
  }

  void OnEvents(uint32_t events) override {
    (*stirred_)(ConnectionId(hello_.connection_id), hello_.lane, (events & ~static_cast<uint32_t>(EPOLLIN)) != 0);
  }

  bool left() const { return HasEnded(socket_.fd.get()); }
  uint32_t attempt() const { return hello_.attempt; }
  LaneSocket TakeSocket() {
    reactor_->UnwatchInLoop(socket_.fd.get());
    return std::move(socket_);
  }

  // No byte after the record is read: it is the comm's.
  std::optional<HelloStatus> Hear() {
    const bool sealed = socket_.seals.opener != nullptr;
    const size_t whole = sealed ? sizeof(record_) : kHeaderBytes;
    while (have_ < whole) {
      const ssize_t got = recv(socket_.fd.get(), record_ + have_, whole - have_, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;
      have_ += static_cast<size_t>(got);
    }
    if (sealed && !OpenRecord()) return HelloStatus::kChanged;
    return IsEstablished(record_) ? HelloStatus::kAccepted : HelloStatus::kForeign;
  }

 private:
  // What is sealed in it takes its place.
  bool OpenRecord() {
    std::string text;
    Opener* const opener = socket_.seals.opener.get();
    if (!opener->OpenAll(record_, sizeof(record_), &text) || text.size() != kHeaderBytes) return false;
    opener->GiveBack();
    text.copy(record_, kHeaderBytes);
    return true;
  }

  Reactor* const reactor_;
  const Stirred* const stirred_;
  const Hello hello_;
  LaneSocket socket_;
  size_t have_ = 0;
  char record_[kHeaderBytes + kSealBytes];
};

PendingConnection::PendingConnection(Reactor* reactor, std::shared_ptr<Listening> listening, const Hello& hello,
                                     const Stirred* stirred, std::shared_ptr<UnacceptedPlace> given)
    : place(std::move(given)),
      reactor_(reactor),
      listening_(std::move(listening)),
      stirred_(stirred),
      hello_(hello),
      lanes_(hello.lanes) {}

PendingConnection::~PendingConnection() {
  if (health_ != nullptr) health_->LeaveInLoop(hello_.connection_id);
}

size_t PendingConnection::present() const {
  return static_cast<size_t>(std::count_if(lanes_.begin(), lanes_.end(), [](auto& lane) { return lane != nullptr; }));
}

HelloStatus PendingConnection::MakePlaceFor(const Hello& hello) {
  if (lanes_.size() != hello.lanes) return HelloStatus::kBadLane;
  auto& lane = lanes_[hello.lane];
  if (lane != nullptr) {
    const bool late = hello.attempt < lane->attempt();
    if (late || (hello.attempt == lane->attempt() && !lane->left())) return HelloStatus::kDuplicateLane;
  }
  whole_ = false;  // The dialler has not said that all are up.
  lane.reset();
  Prune();
  if (hello.lane == 0) hello_ = hello;
  return HelloStatus::kAccepted;
}

void PendingConnection::Add(const Hello& hello, LaneSocket socket) {
  if (lanes_[0] == nullptr || hello.lane == 0) from_ = socket.peer;
  lanes_[hello.lane] = std::make_unique<Lane>(this, hello, std::move(socket));
  Count();
}

void PendingConnection::EndLane(size_t lane) {
  if (!whole_) {
    lanes_[lane].reset();
    Count();
  } else {
    Prune();
  }
}

void PendingConnection::Prune() {
  if (whole_ && !lanes_[0]->left()) return;
  whole_ = false;
  for (auto& lane : lanes_) {
    if (lane != nullptr && lane->left()) lane.reset();
  }
  Count();
}

bool PendingConnection::first_left() const { return lanes_[0] == nullptr || lanes_[0]->left(); }

void PendingConnection::BecomeWhole(const std::shared_ptr<HealthPeer>& health) {
  whole_ = true;
  if (health == nullptr || health == health_) return;
  if (health_ != nullptr) health_->LeaveInLoop(hello_.connection_id);
  health_ = health;
  health_->ExpectInLoop(hello_.connection_id);
}

std::optional<HelloStatus> PendingConnection::Hear() { return speaks() ? lanes_[0]->Hear() : HelloStatus::kAccepted; }

std::vector<LaneSocket> PendingConnection::TakeLanes() {
  std::vector<LaneSocket> sockets;
  for (auto& lane : lanes_) sockets.push_back(lane->TakeSocket());
  return sockets;
}

}  // namespace tcpx
