#include "net_socket/greeter.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
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

}  // namespace

class Greeter::Greeting final : public Reactor::Handler {
 public:
  Greeting(Greeter* greeter, uint64_t arrival, OwnedFd socket, const SocketAddress& peer)
      : number(arrival), source(SourceOf(peer)), from(peer), fd(std::move(socket)), greeter_(greeter) {}
  ~Greeting() override {
    reactor().CancelTimerInLoop(timer_);
    if (fd.valid()) reactor().UnwatchInLoop(fd.get());
  }

  void StartInLoop() {
    const int64_t deadline = MonotonicNanos() + greeter_->runtime_->options.hello_timeout_ns;
    timer_ = reactor().AddTimerInLoop(
        deadline, [this] { greeter_->ForgetInLoop(this, have_ == 0 ? Stranger::kSilent : Stranger::kHalf); });
    if (!reactor().WatchInLoop(fd.get(), EPOLLIN | EPOLLRDHUP, this).ok())
      greeter_->ForgetInLoop(this, Stranger::kCrowd);
  }

  void OnEvents(uint32_t) override {
    const ssize_t got = recv(fd.get(), bytes_ + have_, kHelloBytes - have_, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got <= 0) {
      greeter_->ForgetInLoop(this, have_ == 0 ? Stranger::kScan : Stranger::kHalf);
      return;
    }
    have_ += static_cast<size_t>(got);
    if (have_ >= kHelloMagicBytes && DecodeHello(bytes_, &hello) != nullptr) {
      greeter_->ForgetInLoop(this, Stranger::kForeign);
    } else if (have_ == kHelloBytes) {
      greeter_->GreetedInLoop(this);
    }
  }

  const uint64_t number;
  const Source source;
  const SocketAddress from;
  OwnedFd fd;
  Hello hello;

 private:
  Reactor& reactor() { return greeter_->runtime_->reactor; }

  Greeter* const greeter_;
  Reactor::TimerId timer_;
  size_t have_ = 0;
  char bytes_[kHelloBytes] = {};
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

// Takes the descriptor out and destroys the rest.
OwnedFd Greeter::TakeInLoop(Greeting* greeting) {
  runtime_->reactor.UnwatchInLoop(greeting->fd.get());
  OwnedFd fd = std::move(greeting->fd);
  auto crowd = crowd_.find(greeting->source);
  if (--crowd->second == 0) crowd_.erase(crowd);
  greetings_.erase(greeting->number);
  return fd;
}

void Greeter::ForgetInLoop(Greeting* greeting, Stranger kind) {
  strangers_->NoteInLoop(kind, greeting->from);
  TakeInLoop(greeting).reset();
}

void Greeter::GreetedInLoop(Greeting* greeting) {
  Guest guest;
  guest.hello = greeting->hello;
  guest.from = greeting->from;
  guest.fd = TakeInLoop(greeting);
  if (guest.hello.version == kWireVersion) {
    greeted_(std::move(guest));
    return;
  }
  Answer answer;
  answer.status = HelloStatus::kWrongVersion;
  AnswerInLoop(guest, answer);
}

bool Greeter::AnswerInLoop(const Guest& guest, const Answer& answer) {
  if (answer.status != HelloStatus::kAccepted) strangers_->NoteInLoop(StrangerOf(answer.status), guest.from);
  char bytes[kAnswerBytesMax];
  const auto length = static_cast<ssize_t>(EncodeAnswer(answer, bytes));
  // A fresh socket has room for an answer.
  return send(guest.fd.get(), bytes, static_cast<size_t>(length), MSG_DONTWAIT | MSG_NOSIGNAL) == length;
}

void Greeter::CloseInLoop() {
  greetings_.clear();
  crowd_.clear();
}

}  // namespace tcpx
