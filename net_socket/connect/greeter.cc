#include "net_socket/connect/greeter.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "common/clock.h"

namespace tcpx {
namespace {

// Strangers that may be silent at the same time. Too low: a burst of real peers is cut; too high: descriptors run out.
constexpr long kGreetingsMax = 4096;
// So many there may always be, however few descriptors are left: peers come in bursts.
constexpr long kGreetingsMin = 16;
// For so long after descriptors were scarce a newcomer takes another's place: its number, which became free, is a low
// one and tells nothing.
constexpr int64_t kScarceNs = kSecond;

size_t RoomForGreetings() {
  const long limit = DescriptorLimit();
  if (limit < 0) return kGreetingsMax;
  return static_cast<size_t>(std::clamp(limit / 4, kGreetingsMin, kGreetingsMax));
}

// The kernel gives the lowest free number: below so high a one everything is taken. The last eighth is for the process's
// own sockets and files.
bool DescriptorsAreScarce(int fd) {
  const long limit = DescriptorLimit();
  return limit > 0 && fd >= limit - limit / 8;
}

// A fresh socket has room for all that a handshake says.
bool Send(int fd, const std::string& bytes) {
  return send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

class Greeter::Greeting final : public Reactor::Handler {
 public:
  Greeting(Greeter* greeter, uint64_t arrival, OwnedFd fd, const SocketAddress& from)
      : number(arrival),
        source(SourceOf(from)),
        guest{AcceptHandshake(greeter->runtime_->secret), std::move(fd), from},
        greeter_(greeter) {}
  ~Greeting() override {
    reactor().CancelTimerInLoop(timer_);
    if (guest.fd.valid()) reactor().UnwatchInLoop(guest.fd.get());
  }

  void StartInLoop() {
    const int64_t deadline = MonotonicNanos() + greeter_->runtime_->options.hello_timeout_ns;
    timer_ = reactor().AddTimerInLoop(deadline, [this] { Forget(Stranger::kSilent); });
    if (!reactor().WatchInLoop(guest.fd.get(), EPOLLIN | EPOLLRDHUP, this).ok()) Forget(Stranger::kCrowd);
  }

  void OnEvents(uint32_t) override {
    const ssize_t got = recv(guest.fd.get(), guest.handshake.room(), guest.handshake.wants(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got <= 0) return Forget(Stranger::kScan);
    guest.handshake.Took(static_cast<size_t>(got));
    switch (guest.handshake.state()) {
      case AcceptHandshake::State::kReading:
        return Speak();
      case AcceptHandshake::State::kForeign:
        return Forget(Stranger::kForeign);
      case AcceptHandshake::State::kRefused:
        return greeter_->RefuseInLoop(this, guest.handshake.refusal());
      case AcceptHandshake::State::kGreeted:
        return greeter_->greeted_(greeter_->TakeInLoop(this));
    }
  }

  const uint64_t number;
  const Source source;
  Guest guest;

 private:
  Reactor& reactor() { return greeter_->runtime_->reactor; }

  void Speak() {
    const std::string said = guest.handshake.TakeSaid();
    if (!said.empty() && !Send(guest.fd.get(), said)) Forget(Stranger::kHalf);
  }

  // Who has begun to speak is neither silent nor a scanner.
  void Forget(Stranger kind) {
    const bool unless_begun = kind == Stranger::kSilent || kind == Stranger::kScan;
    greeter_->ForgetInLoop(this, unless_begun && !guest.handshake.nothing_came() ? Stranger::kHalf : kind);
  }

  Greeter* const greeter_;
  Reactor::TimerId timer_;
};

Greeter::Greeter(Runtime* runtime, Strangers* strangers, std::function<void(Guest)> greeted)
    : runtime_(runtime), strangers_(strangers), greeted_(std::move(greeted)) {}

Greeter::~Greeter() = default;

Greeter::Source Greeter::SourceOf(const SocketAddress& from) {
  char encoded[SocketAddress::kEncodedBytes];
  from.Encode(encoded);
  Source source;
  std::memcpy(source.data(), encoded + 8, source.size());
  // Whoever has one address of an IPv6 network has all of it. Link-local ones share a prefix and nothing else.
  if (from.family() == AF_INET6 && !from.IsLinkLocal()) std::fill(source.begin() + 8, source.end(), uint8_t{0});
  return source;
}

void Greeter::WelcomeInLoop(OwnedFd fd, const SocketAddress& from) {
  const int64_t now = MonotonicNanos();
  if (DescriptorsAreScarce(fd.get())) scarce_until_ns_ = now + kScarceNs;
  const size_t room = now < scarce_until_ns_ ? size_t{kGreetingsMin} : RoomForGreetings();
  if (greetings_.size() >= room) MakeRoomInLoop();
  auto greeting = std::make_unique<Greeting>(this, ++arrived_, std::move(fd), from);
  Greeting* raw = greeting.get();
  ++crowd_[raw->source];
  greetings_.emplace(raw->number, std::move(greeting));
  raw->StartInLoop();
}

bool Greeter::MakeRoomInLoop() {
  if (greetings_.empty()) return false;
  const auto fuller = [](const auto& a, const auto& b) { return a.second < b.second; };
  const Source fullest = std::max_element(crowd_.begin(), crowd_.end(), fuller)->first;
  const auto oldest = std::find_if(greetings_.begin(), greetings_.end(),
                                   [&fullest](const auto& greeting) { return greeting.second->source == fullest; });
  ForgetInLoop(oldest->second.get(), Stranger::kCrowd);
  return true;
}

// Takes the socket out and destroys the rest.
Guest Greeter::TakeInLoop(Greeting* greeting) {
  runtime_->reactor.UnwatchInLoop(greeting->guest.fd.get());
  Guest guest = std::move(greeting->guest);
  auto crowd = crowd_.find(greeting->source);
  if (--crowd->second == 0) crowd_.erase(crowd);
  greetings_.erase(greeting->number);
  return guest;
}

void Greeter::ForgetInLoop(Greeting* greeting, Stranger kind) {
  strangers_->NoteInLoop(kind, TakeInLoop(greeting).from);
}

void Greeter::RefuseInLoop(Greeting* greeting, HelloStatus why) {
  Answer answer;
  answer.status = why;
  AnswerInLoop(TakeInLoop(greeting), answer);
}

bool Greeter::AnswerInLoop(const Guest& guest, const Answer& answer) {
  const bool accepted = answer.status == HelloStatus::kAccepted;
  if (!accepted) strangers_->NoteInLoop(StrangerOf(answer.status), guest.from);
  return Send(guest.fd.get(), guest.handshake.Encode(answer)) && accepted;
}

void Greeter::CloseInLoop() {
  greetings_.clear();
  crowd_.clear();
}

}  // namespace tcpx
