#include "tests/support/fake_engine.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/support/seed.h"

namespace tcpx {
namespace {

class FakeEngine final : public Engine {
 public:
  FakeEngine(uint64_t seed, size_t step_bytes_max)
      : rng_(seed), step_bytes_max_(step_bytes_max), event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~FakeEngine() override { close(event_); }

  bool zero_copy() const override { return false; }
  const char* name() const override { return "fake"; }

  void Submit(IoOp* op) override {
    op->in_flight = true;
    op->cancelling = false;
    ops_.push_back(op);
  }

  void Cancel(IoOp* op) override { op->cancelling = op->cancelling || op->in_flight; }

  void Forget(int) override {}

  int Reap(Completion* completions, int max, int64_t timeout_ns) override {
    int count = TryAll(completions, max);
    if (count == 0) {
      Wait(timeout_ns);
      count = TryAll(completions, max);
    }
    return count;
  }

  void Wake() override {
    const uint64_t one = 1;
    (void)!write(event_, &one, sizeof(one));
  }

 private:
  int TryAll(Completion* completions, int max) {
    for (size_t i = ops_.size(); i > 1; --i) std::swap(ops_[i - 1], ops_[rng_.Next() % i]);
    int count = 0;
    for (size_t i = 0; i < ops_.size() && count < max;) {
      IoOp* op = ops_[i];
      const int result = op->cancelling ? -ECANCELED : Try(op);
      if (result == -EAGAIN) {
        ++i;
        continue;
      }
      ops_.erase(ops_.begin() + static_cast<ptrdiff_t>(i));
      op->in_flight = false;
      completions[count++] = {op, result, false, false};
    }
    return count;
  }

  int Try(IoOp* op) {
    if (op->kind == IoOp::Kind::kWritable) {
      pollfd asked{op->fd, POLLOUT, 0};
      return poll(&asked, 1, 0) > 0 ? 0 : -EAGAIN;
    }
    iovec cut[IoOp::kIovMax];
    msghdr message{};
    message.msg_iov = cut;
    message.msg_iovlen = Cut(*op, cut);
    const ssize_t moved = op->kind == IoOp::Kind::kSend ? sendmsg(op->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                                                        : recvmsg(op->fd, &message, MSG_DONTWAIT);
    return moved < 0 ? -errno : static_cast<int>(moved);
  }

  // The first bytes of the operation, as many as this step moves. Entries used.
  size_t Cut(const IoOp& op, iovec* cut) {
    size_t rest = rng_.Between(1, step_bytes_max_);
    size_t count = 0;
    for (int i = 0; i < op.iov_count && rest > 0; ++i) {
      const size_t length = std::min(op.iov[i].iov_len, rest);
      cut[count++] = {op.iov[i].iov_base, length};
      rest -= length;
    }
    return count;
  }

  void Wait(int64_t timeout_ns) {
    std::vector<pollfd> asked = {{event_, POLLIN, 0}};
    for (const IoOp* op : ops_) {
      const short events = op->kind == IoOp::Kind::kReceive ? POLLIN : POLLOUT;
      asked.push_back({op->fd, events, 0});
    }
    poll(asked.data(), asked.size(), timeout_ns < 0 ? -1 : static_cast<int>((timeout_ns + 999999) / 1000000));
    uint64_t drained;
    if ((asked[0].revents & POLLIN) != 0) (void)!read(event_, &drained, sizeof(drained));
  }

  Rng rng_;
  const size_t step_bytes_max_;
  const int event_;
  std::vector<IoOp*> ops_;
};

}  // namespace

std::unique_ptr<Engine> MakeFakeEngine(uint64_t seed, size_t step_bytes_max) {
  return std::make_unique<FakeEngine>(seed, step_bytes_max);
}

}  // namespace tcpx
