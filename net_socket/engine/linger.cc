#include "net_socket/engine/linger.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

#include "common/clock.h"

namespace tcpx {
namespace {

class Lingerer final : public Reactor::Handler {
 public:
  Lingerer(Reactor* reactor, OwnedFd fd) : reactor_(reactor), fd_(std::move(fd)) {}

  void StartInLoop(int64_t linger_ns) {
    if (!reactor_->WatchInLoop(fd_.get(), EPOLLIN | EPOLLRDHUP, this).ok()) {
      delete this;
      return;
    }
    reactor_->HoldInLoop();
    timer_ = reactor_->AddTimerInLoop(MonotonicNanos() + linger_ns, [this] { Finish(); });
    OnEvents(0);
  }

  void OnEvents(uint32_t) override {
    char discarded[64 * 1024];
    // Bounded, so that a peer that floods does not keep the loop; what is left is reported again.
    for (int round = 0; round < 16; ++round) {
      const ssize_t got = recv(fd_.get(), discarded, sizeof(discarded), MSG_DONTWAIT);
      if (got > 0) continue;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      Finish();
      return;
    }
  }

 private:
  void Finish() {
    reactor_->CancelTimerInLoop(timer_);
    reactor_->UnwatchInLoop(fd_.get());
    reactor_->ReleaseInLoop();
    delete this;
  }

  Reactor* const reactor_;
  OwnedFd fd_;
  Reactor::TimerId timer_;
};

}  // namespace

void ReleaseSocket(Reactor* reactor, OwnedFd fd, int64_t linger_ns) {
  auto shared = std::make_shared<OwnedFd>(std::move(fd));
  reactor->Post([reactor, shared, linger_ns] {
    reactor->UnwatchInLoop(shared->get());
    if (linger_ns == 0) {
      shared->reset();
      return;
    }
    (new Lingerer(reactor, std::move(*shared)))->StartInLoop(linger_ns);
  });
}

}  // namespace tcpx
