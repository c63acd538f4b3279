// The engine of last resort, and of pods without io_uring: edge-triggered epoll and non-blocking calls.
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/engine/engine.h"

namespace tcpx {
namespace {

class EpollEngine final : public Engine {
 public:
  EpollEngine(OwnedFd epoll, OwnedFd event) : epoll_(std::move(epoll)), event_(std::move(event)) {}

  bool zero_copy() const override { return false; }
  const char* name() const override { return "epoll"; }

  void Submit(IoOp* op) override {
    op->in_flight = true;
    op->cancelling = false;
    ready_.push_back(op);
  }

  void Cancel(IoOp* op) override {
    if (!op->in_flight || op->cancelling) return;
    op->cancelling = true;
    IoOp** slot = SlotOf(&waiting_[op->fd], op->kind);
    if (*slot == op) Release(slot);
  }

  void Forget(int fd) override {
    if (waiting_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }

  int Reap(Completion* completions, int max, int64_t timeout_ns) override {
    int count = TryReady(completions, max);
    if (count > 0 || !ready_.empty()) {
      Poll(0);
      return count;
    }
    Poll(timeout_ns);
    return TryReady(completions, max);
  }

  void Wake() override { (void)eventfd_write(event_.get(), 1); }

 private:
  struct Waiting {
    bool registered = false;
    IoOp* send = nullptr;
    IoOp* receive = nullptr;
  };

  static IoOp** SlotOf(Waiting* waiting, IoOp::Kind kind) {
    return kind == IoOp::Kind::kReceive ? &waiting->receive : &waiting->send;
  }

  // Tries every ready operation once; what would block waits for its edge.
  int TryReady(Completion* completions, int max) {
    int count = 0;
    size_t tried = 0;
    while (tried < ready_.size() && count < max) {
      IoOp* op = ready_[tried++];
      const int result = op->cancelling ? -ECANCELED : Try(op);
      if (result == -EAGAIN) {
        Await(op);
      } else {
        op->in_flight = false;
        completions[count++] = {op, result};
      }
    }
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(tried));
    return count;
  }

  static int Try(IoOp* op) {
    if (op->kind == IoOp::Kind::kWritable) return Writable(op->fd);
    op->message = MessageOf(op->iov, op->iov_count);
    for (;;) {
      const ssize_t moved = op->kind == IoOp::Kind::kReceive
                                ? recvmsg(op->fd, &op->message, MSG_DONTWAIT)
                                : sendmsg(op->fd, &op->message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (moved >= 0) return static_cast<int>(moved);
      if (errno != EINTR) return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    }
  }

  // As epoll's writable edge, poll obeys TCP_NOTSENT_LOWAT.
  static int Writable(int fd) {
    pollfd asked{fd, POLLOUT, 0};
    if (poll(&asked, 1, 0) < 0) return -errno;
    return asked.revents == 0 ? -EAGAIN : 0;
  }

  // The edge may already have come: register first, then try again at the next round if it was armed just now.
  void Await(IoOp* op) {
    Waiting& waiting = waiting_[op->fd];
    *SlotOf(&waiting, op->kind) = op;
    if (waiting.registered) return;
    waiting.registered = true;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.fd = op->fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, op->fd, &event) != 0) {
      // Without an edge to wait for, the operation is tried at every round instead.
      waiting.registered = false;
      *SlotOf(&waiting, op->kind) = nullptr;
      retry_.push_back(op);
    }
  }

  void Poll(int64_t timeout_ns) {
    ready_.insert(ready_.end(), retry_.begin(), retry_.end());
    retry_.clear();
    epoll_event events[64];
    if (!ready_.empty()) timeout_ns = std::min<int64_t>(std::max<int64_t>(timeout_ns, 0), kMillisecond);
    const int timeout_ms = timeout_ns < 0 ? -1 : static_cast<int>((timeout_ns + kMillisecond - 1) / kMillisecond);
    const int count = epoll_wait(epoll_.get(), events, 64, timeout_ms);
    for (int i = 0; i < count; ++i) Fire(events[i]);
  }

  void Fire(const epoll_event& event) {
    if (event.data.fd == event_.get()) {
      eventfd_t drained;
      (void)eventfd_read(event_.get(), &drained);
      return;
    }
    auto found = waiting_.find(event.data.fd);
    if (found == waiting_.end()) return;
    const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    if (broken || (event.events & (EPOLLIN | EPOLLRDHUP)) != 0) Release(&found->second.receive);
    if (broken || (event.events & EPOLLOUT) != 0) Release(&found->second.send);
  }

  void Release(IoOp** slot) {
    if (*slot == nullptr) return;
    ready_.push_back(*slot);
    *slot = nullptr;
  }

  OwnedFd epoll_;
  OwnedFd event_;
  std::vector<IoOp*> ready_;
  std::vector<IoOp*> retry_;
  absl::flat_hash_map<int, Waiting> waiting_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeEpollEngine() {
  OwnedFd epoll(epoll_create1(EPOLL_CLOEXEC));
  OwnedFd event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll.valid() || !event.valid()) return ErrnoStatus(errno, "epoll_create1/eventfd for a progress thread");
  epoll_event wake{};
  wake.events = EPOLLIN;
  wake.data.fd = event.get();
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &wake) != 0) return ErrnoStatus(errno, "epoll_ctl");
  return std::unique_ptr<Engine>(new EpollEngine(std::move(epoll), std::move(event)));
}

}  // namespace tcpx
