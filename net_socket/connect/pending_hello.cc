#include "net_socket/connect/pending_hello.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/socket.h"
#include "common/status.h"

namespace tcpx {
namespace {

// Sockets that may be within their hello at the same time. Too low: a burst of real peers is cut; too high: descriptors
// run out.
constexpr long kHellosMax = 4096;
// This many may always wait, however few descriptors are left: peers come in bursts.
constexpr long kHellosMin = 16;
// For this long after descriptors were scarce a newcomer takes another's place: its number, which became free, is a low
// one and tells nothing.
constexpr int64_t kScarceNs = kSecond;

size_t RoomForHellos() {
  const long limit = DescriptorLimit();
  return static_cast<size_t>(limit < 0 ? kHellosMax : std::clamp(limit / 4, kHellosMin, kHellosMax));
}

// The kernel gives the lowest free number: below so high a one everything is taken.
bool DescriptorsAreScarce(int fd) {
  const long limit = DescriptorLimit();
  return limit > 0 && fd >= limit - limit / PendingHellos::kSpareShare;
}

// A fresh socket has room for all that a handshake says.
bool Send(int fd, const std::string& bytes) {
  return send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

class PendingHellos::PendingHello final : public Reactor::Handler, public KeyTurns::Waiter {
 public:
  PendingHello(PendingHellos* hellos, uint64_t arrival, OwnedFd fd, const SocketAddress& from)
      : number(arrival),
        source(SourceOf(from)),
        socket{AcceptHandshake(hellos->secret_, &hellos->known_), std::move(fd), from},
        hellos_(hellos) {}
  ~PendingHello() override {
    reactor().CancelTimerInLoop(timer_);
    if (waits_) hellos_->turns_.GiveUpInLoop(source, this);
    if (socket.fd.valid()) reactor().UnwatchInLoop(socket.fd.get());
  }

  void StartInLoop() {
    timer_ = reactor().AddDeadlineInLoop(hellos_->runtime_->options.hello_timeout_ns,
                                         [this] { Forget(HelloStatus::kSilent); });
    if (!reactor().WatchInLoop(socket.fd.get(), kSpeaks, this).ok()) Forget(HelloStatus::kCrowd);
  }

  // The kernel has fallen silent about it until it is asked again (EPOLLONESHOT).
  void OnEvents(uint32_t) override {
    if (!socket.handshake.Encrypts()) return Hear();
    waits_ = true;
    hellos_->turns_.AwaitInLoop(source, this);
  }

  void KeyTurnInLoop() override {
    waits_ = false;
    // A stranger who has left is not worth a key agreement.
    if (HasEnded(socket.fd.get())) return Forget(HelloStatus::kScan);
    Hear();
  }

  const uint64_t number;
  const PeerSource source;
  HelloSocket socket;

 private:
  static constexpr uint32_t kSpeaks = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;

  Reactor& reactor() { return hellos_->runtime_->reactor; }

  void Hear() {
    const ssize_t got = recv(socket.fd.get(), socket.handshake.room(), socket.handshake.wants(), MSG_DONTWAIT);
    if (got < 0 && IsTransientErrno(errno)) return Listen();
    if (got <= 0) return Forget(HelloStatus::kScan);
    socket.handshake.Took(static_cast<size_t>(got));
    const AcceptHandshake::State state = socket.handshake.state();
    if (state == AcceptHandshake::State::kReading) return Speak();
    if (state == AcceptHandshake::State::kForeign) return Forget(HelloStatus::kForeign);
    if (state == AcceptHandshake::State::kGreeted) return hellos_->whole_(hellos_->TakeInLoop(this));
    hellos_->RefuseInLoop(this, socket.handshake.refusal());
  }

  void Speak() {
    const std::string said = socket.handshake.TakeSaid();
    if (!said.empty() && !Send(socket.fd.get(), said)) return Forget(HelloStatus::kUnfinished);
    Listen();
  }

  void Listen() { reactor().ChangeInLoop(socket.fd.get(), kSpeaks); }

  // A peer that has sent something is neither silent nor a scanner.
  void Forget(HelloStatus why) {
    const bool begun = !socket.handshake.nothing_came();
    if (begun && (why == HelloStatus::kSilent || why == HelloStatus::kScan)) why = HelloStatus::kUnfinished;
    hellos_->rejected_->NoteInLoop(why, hellos_->TakeInLoop(this).from);
  }

  PendingHellos* const hellos_;
  Reactor::TimerId timer_;
  bool waits_ = false;  // for its turn
};

PendingHellos::PendingHellos(Runtime* runtime, const Secret* secret, RejectedPeers* rejected,
                             AcceptHandshake::Known known, std::function<void(HelloSocket)> whole)
    : runtime_(runtime),
      secret_(secret),
      rejected_(rejected),
      known_(std::move(known)),
      whole_(std::move(whole)),
      turns_(&runtime->reactor) {}

PendingHellos::~PendingHellos() = default;

void PendingHellos::AddInLoop(OwnedFd fd, const SocketAddress& from) {
  const int64_t now = MonotonicNanos();
  if (DescriptorsAreScarce(fd.get())) scarce_until_ns_ = now + kScarceNs;
  const size_t room = now < scarce_until_ns_ ? size_t{kHellosMin} : RoomForHellos();
  if (hellos_.size() >= room) MakeRoomInLoop();
  auto hello = std::make_unique<PendingHello>(this, ++arrived_, std::move(fd), from);
  PendingHello* raw = hello.get();
  ++crowd_[raw->source];
  hellos_.emplace(raw->number, std::move(hello));
  raw->StartInLoop();
}

bool PendingHellos::MakeRoomInLoop() {
  if (hellos_.empty()) return false;
  const auto fuller = [](const auto& a, const auto& b) { return a.second < b.second; };
  const PeerSource fullest = std::max_element(crowd_.begin(), crowd_.end(), fuller)->first;
  const auto oldest = std::find_if(hellos_.begin(), hellos_.end(),
                                   [&fullest](const auto& hello) { return hello.second->source == fullest; });
  RefuseInLoop(oldest->second.get(), HelloStatus::kCrowd);  // A peer comes again, by the same path.
  return true;
}

// Takes the socket out and destroys the rest.
HelloSocket PendingHellos::TakeInLoop(PendingHello* hello) {
  runtime_->reactor.UnwatchInLoop(hello->socket.fd.get());
  HelloSocket socket = std::move(hello->socket);
  auto crowd = crowd_.find(hello->source);
  if (--crowd->second == 0) crowd_.erase(crowd);
  hellos_.erase(hello->number);
  return socket;
}

void PendingHellos::RefuseInLoop(PendingHello* hello, HelloStatus why) {
  Answer answer;
  answer.status = why;
  AnswerInLoop(TakeInLoop(hello), answer);
}

bool PendingHellos::AnswerInLoop(const HelloSocket& socket, const Answer& answer) {
  const bool accepted = answer.status == HelloStatus::kAccepted;
  if (!accepted) rejected_->NoteInLoop(answer.status, socket.from);
  return Send(socket.fd.get(), socket.handshake.Encode(answer)) && accepted;
}

void PendingHellos::CloseInLoop() {
  hellos_.clear();
  crowd_.clear();
}

}  // namespace tcpx
