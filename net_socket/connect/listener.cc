#include "net_socket/connect/listener.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/status.h"

namespace tcpx {
namespace {

// Accepted at once, before others get their turn.
constexpr int kPortion = 64;
// With no descriptor left, the listener pauses this long instead of spinning on its backlog.
constexpr int64_t kPauseNs = 100 * kMillisecond;
constexpr int64_t kWarnAgainNs = 60 * kSecond;

bool IsLimit(int err) { return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS; }

}  // namespace

Listener::~Listener() { StopResting(); }

void Listener::StopResting() {
  if (pausing_) runtime_->reactor.CancelTimerInLoop(pause_timer_);
  pausing_ = false;
}

void Listener::OnEvents(uint32_t) {
  if (!goes_on_) AcceptSome();
}

void Listener::AcceptSome() {
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
      return;                            // EAGAIN, or a dialler that has gone already: the next event brings the rest.
    }
    hellos_->AddInLoop(std::move(fd), SocketAddress::FromSockaddr(generic, length).value_or(SocketAddress()));
  }
  goes_on_ = true;
  runtime_->reactor.Post([self = tie_.To(this)] { self.With([](Listener* listener) { listener->AcceptSome(); }); });
}

void Listener::LimitReached(int err) {
  const int64_t now = MonotonicNanos();
  if (warned_ns_ == 0 || now - warned_ns_ >= kWarnAgainNs) {
    TCPX_WARN("accept: %s; new connections wait. Raise the limit of open files (ulimit -n)", ErrnoText(err));
    warned_ns_ = now;
  }
  if (!hellos_->MakeRoomInLoop()) Pause();
}

void Listener::WasShutDown() {
  StopResting();
  runtime_->reactor.UnwatchInLoop(fd_.get());
  TCPX_WARN(
      "something outside the plugin shut down its listening socket (ss -K?): no peer can connect to it any more, "
      "and no lost lane can be resumed through it. Restart the job");
}

void Listener::Pause() {
  pausing_ = true;
  runtime_->reactor.ChangeInLoop(fd_.get(), 0);
  pause_timer_ = runtime_->reactor.AddTimerInLoop(MonotonicNanos() + kPauseNs, [this] {
    pausing_ = false;
    runtime_->reactor.ChangeInLoop(fd_.get(), EPOLLIN);
  });
}

}  // namespace tcpx
