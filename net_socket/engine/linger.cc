#include "net_socket/engine/linger.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/status.h"

namespace tcpx {

class LingeringSockets::Socket final : public Reactor::Handler {
 public:
  Socket(LingeringSockets* all, OwnedFd fd, Aborted aborted)
      : all_(all), fd_(std::move(fd)), aborted_(std::move(aborted)) {}

  void StartInLoop(int64_t linger_ns) {
    if (!reactor()->WatchInLoop(fd_.get(), EPOLLIN | EPOLLRDHUP, this).ok()) {
      delete this;
      return;
    }
    reactor()->HoldInLoop();
    all_->sockets_.insert(this);
    timer_ = reactor()->AddTimerInLoop(MonotonicNanos() + linger_ns, [this] { Finish(); });
    OnEvents(0);
  }

  void OnEvents(uint32_t) override {
    if (!Drain()) Finish();
  }

  // Destroys this where it ends.
  void HurryInLoop() {
    if (aborted_ == nullptr || !aborted_->load(std::memory_order_relaxed)) return;
    (void)Drain();  // Unread data would make a reset of the close.
    Finish();
  }

 private:
  // False at the end of the stream.
  bool Drain() {
    char discarded[64 * 1024];
    // Bounded, so that a peer that floods does not keep the loop; what is left is reported again.
    for (int round = 0; round < 16; ++round) {
      const ssize_t got = recv(fd_.get(), discarded, sizeof(discarded), MSG_DONTWAIT);
      if (got <= 0) return got < 0 && IsTransientErrno(errno);
    }
    return true;
  }

  void Finish() {
    reactor()->CancelTimerInLoop(timer_);
    reactor()->UnwatchInLoop(fd_.get());
    reactor()->ReleaseInLoop();
    all_->sockets_.erase(this);
    delete this;
  }

  Reactor* reactor() const { return all_->reactor_; }

  LingeringSockets* const all_;
  OwnedFd fd_;
  const Aborted aborted_;
  Reactor::TimerId timer_;
};

void LingeringSockets::Release(OwnedFd fd, int64_t linger_ns, Aborted aborted) {
  reactor_->Post([this, shared = std::make_shared<OwnedFd>(std::move(fd)), linger_ns, aborted = std::move(aborted)] {
    reactor_->UnwatchInLoop(shared->get());
    if (linger_ns > 0) (new Socket(this, std::move(*shared), aborted))->StartInLoop(linger_ns);
  });
}

void LingeringSockets::Hurry() {
  reactor_->Post([this] {
    const std::vector<Socket*> sockets(sockets_.begin(), sockets_.end());
    for (Socket* socket : sockets) socket->HurryInLoop();
  });
}

}  // namespace tcpx
