// The io_uring engine: one ring per progress thread, touched by that thread alone.
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/params.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/engine/engine.h"
#include "net_socket/engine/ring_refusal.h"

namespace tcpx {
namespace {

// One receive, one send and one cancel of some hundred lanes per submit; more lanes only mean more submits.
constexpr unsigned kSubmitEntries = 256;
// What does not fit the kernel keeps (FEAT_NODROP, Linux 5.5) and hands out later. Four times as many would more than
// double a ring, and a host's ranks may have to share 8 MiB (ring_refusal.h).
constexpr unsigned kCompletionEntries = 1024;

// user_data of what is not an operation; operations are pointers.
constexpr uint64_t kWakeTag = 1;
constexpr uint64_t kIgnoreTag = 2;

// In an SQE's ioprio: the notification's result tells in its highest bit whether the kernel copied. Linux 6.2
// (include/uapi/linux/io_uring.h); liburing 2.3 has no name for it.
constexpr uint16_t kReportUsage = 1U << 3;
constexpr uint32_t kUsageCopied = 1U << 31;

// While the kernel refuses to take what is submitted, a thread tries again after this.
constexpr int64_t kRefusedNs = kMillisecond;

// Setup flags, best first; the kernel refuses unknown ones with EINVAL, so the ladder is exact. SINGLE_ISSUER is
// Linux 6.0, DEFER_TASKRUN 6.1, COOP_TASKRUN 5.19, SUBMIT_ALL 5.18.
constexpr unsigned kLadder[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
    0,
};

static_assert(std::size(kLadder) == kUringRungs);

// The first rung from *rung on that the kernel takes, which *rung then is.
int SetUpRing(io_uring* ring, int* rung) {
  for (; *rung < kUringRungs; ++*rung) {
    io_uring_params params{};
    params.flags = kLadder[*rung] | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
    params.cq_entries = kCompletionEntries;
    const int result = io_uring_queue_init_params(kSubmitEntries, ring, &params);
    if (result != -EINVAL) return result;
  }
  return -EINVAL;
}

absl::Status OpenRing(io_uring* ring, int first_rung) {
  const int result = OpenPatiently([ring, first_rung] {
    int rung = first_rung;
    return SetUpRing(ring, &rung);
  });
  return result < 0 ? RingRefusal(-result) : absl::OkStatus();
}

// For tests of the whole plugin: what an older kernel would take. After the last one: nothing, as Linux 5.4.
int FirstRung() {
  const char* rung = getenv(kTestUringRung);
  return rung == nullptr ? 0 : std::clamp(atoi(rung), 0, kUringRungs);
}

bool Supports(io_uring* ring, std::initializer_list<int> operations) {
  io_uring_probe* probe = io_uring_get_probe_ring(ring);
  if (probe == nullptr) return false;
  const bool all = std::all_of(operations.begin(), operations.end(),
                               [probe](int operation) { return io_uring_opcode_supported(probe, operation) != 0; });
  io_uring_free_probe(probe);
  return all;
}

// A filter may let setup pass and refuse enter: only a round trip tells.
absl::Status TryRing(io_uring* ring) {
  if ((ring->features & IORING_FEAT_FAST_POLL) == 0)
    return absl::UnimplementedError("io_uring without FAST_POLL (Linux 5.7)");
  if ((ring->features & IORING_FEAT_EXT_ARG) == 0)
    return absl::UnimplementedError("io_uring without EXT_ARG (Linux 5.11)");
  if (!Supports(ring, {IORING_OP_SENDMSG, IORING_OP_RECVMSG, IORING_OP_SEND, IORING_OP_RECV, IORING_OP_POLL_ADD,
                       IORING_OP_READ, IORING_OP_ASYNC_CANCEL}))
    return absl::UnimplementedError("io_uring without socket operations (Linux 5.6)");
  io_uring_sqe* sqe = io_uring_get_sqe(ring);
  io_uring_prep_nop(sqe);
  const int submitted = io_uring_submit_and_wait(ring, 1);
  if (submitted < 0) return RingRefusal(-submitted);
  io_uring_cqe* cqe = nullptr;
  if (io_uring_peek_cqe(ring, &cqe) != 0) return absl::UnimplementedError("io_uring lost a completion");
  io_uring_cqe_seen(ring, cqe);
  return absl::OkStatus();
}

absl::Status TryUring() {
  io_uring ring;
  absl::Status status = OpenRing(&ring, FirstRung());
  if (!status.ok()) return status;
  status = TryRing(&ring);
  io_uring_queue_exit(&ring);
  return status;
}

class UringEngine final : public Engine {
 public:
  UringEngine(const io_uring& ring, OwnedFd event) : ring_(ring), ring_fd_(ring.ring_fd), event_(std::move(event)) {
    io_uring_ring_dontfork(&ring_);
    io_uring_register_ring_fd(&ring_);  // Saves a descriptor look-up per call; works without (before Linux 5.18).
    // Linux 6.1. What Linux 6.2 adds is asked for with every send: the kernel before refuses it with EINVAL.
    zero_copy_ = Supports(&ring_, {IORING_OP_SENDMSG_ZC});
    ArmWake();
  }

  ~UringEngine() override {
    (void)ring_fd_.release();  // queue_exit closes it.
    io_uring_queue_exit(&ring_);
  }

  const char* name() const override { return "io_uring"; }
  bool zero_copy() const override { return zero_copy_; }

  void Submit(IoOp* op) override {
    op->in_flight = true;
    op->cancelling = false;
    io_uring_sqe* sqe = Entry();
    if (sqe != nullptr) {
      Prepare(sqe, op);
    } else {
      waiting_.push_back(op);
    }
  }

  void Cancel(IoOp* op) override {
    if (!op->in_flight || op->cancelling) return;
    op->cancelling = true;
    io_uring_sqe* sqe = Entry();
    if (sqe != nullptr) {
      PrepareCancel(sqe, op);
    } else if (std::find(waiting_.begin(), waiting_.end(), op) == waiting_.end()) {
      cancels_.push_back(op);
    }
  }

  void Forget(int) override {}

  int Reap(Completion* completions, int max, int64_t timeout_ns) override {
    bool woken = false;
    int count = SubmitWaiting(completions, max);
    count += Drain(completions + count, max - count, &woken);
    // The thread that wrote the wake just drained has cleared our sign of sleep and writes no other: look at the queue
    // before sleeping. Only a ring with DEFER_TASKRUN (Linux 6.1) has no such wakes,
    // because nothing completes there outside of the calls below.
    if (count > 0 || woken || timeout_ns == 0) {
      Note(io_uring_submit_and_get_events(&ring_));
      return count + Drain(completions + count, max - count, &woken);
    }
    Note(Wait(timeout_ns));
    return Drain(completions, max, &woken);
  }

  void Wake() override { (void)eventfd_write(event_.get(), 1); }

 private:
  // Null: the submission queue is full, and the kernel takes nothing of it now.
  io_uring_sqe* Entry() {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe != nullptr) return sqe;
    Note(io_uring_submit(&ring_));
    return io_uring_get_sqe(&ring_);
  }

  int Wait(int64_t timeout_ns) {
    if (refused_) timeout_ns = timeout_ns < 0 ? kRefusedNs : std::min(timeout_ns, kRefusedNs);
    if (timeout_ns < 0) return io_uring_submit_and_wait(&ring_, 1);
    io_uring_cqe* cqe = nullptr;
    __kernel_timespec timeout{timeout_ns / kSecond, timeout_ns % kSecond};
    const int result = io_uring_submit_and_wait_timeout(&ring_, &cqe, 1, &timeout, nullptr);
    // A call that fails at once must not make a spinning thread of a waiting one.
    if (refused_ && result < 0 && result != -ETIME) poll(nullptr, 0, static_cast<int>(kRefusedNs / kMillisecond));
    return result;
  }

  // The kernel may refuse for a time (EAGAIN, EBUSY: no memory, too many completions) or for good: what waits is
  // offered again and again, and one line says so.
  void Note(int result) {
    if (result == -EINTR) return;
    refused_ = result < 0 && result != -ETIME;
    if (!refused_ || result == -EAGAIN || result == -EBUSY || logged_) return;
    logged_ = true;
    TCPX_WARN("io_uring_enter: %s; the lanes of this thread cannot move. TCPX_ENGINE=epoll does without io_uring",
              ErrnoText(-result));
  }

  // What found no entry before. Gives the completions of what was cancelled meanwhile.
  int SubmitWaiting(Completion* completions, int max) {
    int count = 0;
    for (; !waiting_.empty() && count < max; waiting_.pop_front()) {
      IoOp* op = waiting_.front();
      if (op->cancelling) {
        op->in_flight = false;
        completions[count++] = {op, -ECANCELED};
        continue;
      }
      io_uring_sqe* sqe = Entry();
      if (sqe == nullptr) break;
      Prepare(sqe, op);
    }
    for (; !cancels_.empty(); cancels_.pop_front()) {
      io_uring_sqe* sqe = Entry();
      if (sqe == nullptr) break;
      PrepareCancel(sqe, cancels_.front());
    }
    if (!armed_) ArmWake();
    return count;
  }

  static void Prepare(io_uring_sqe* sqe, IoOp* op) {
    op->message = MessageOf(op->iov, op->iov_count);
    switch (op->kind) {
      case IoOp::Kind::kSend:
        // WAITALL continues a short send inside the kernel (Linux 5.19; short before, which the lane handles).
        io_uring_prep_sendmsg(sqe, op->fd, &op->message, MSG_NOSIGNAL | MSG_WAITALL);
        break;
      case IoOp::Kind::kSendZeroCopy:
        io_uring_prep_sendmsg_zc(sqe, op->fd, &op->message, MSG_NOSIGNAL | MSG_WAITALL);
        sqe->ioprio |= kReportUsage;
        break;
      case IoOp::Kind::kReceive:
        if (op->iov_count == 1) {
          io_uring_prep_recv(sqe, op->fd, op->iov[0].iov_base, op->iov[0].iov_len, 0);
        } else {
          io_uring_prep_recvmsg(sqe, op->fd, &op->message, 0);
        }
        break;
      case IoOp::Kind::kWritable:
        io_uring_prep_poll_add(sqe, op->fd, POLLOUT);
        break;
    }
    io_uring_sqe_set_data(sqe, op);
  }

  static void PrepareCancel(io_uring_sqe* sqe, IoOp* op) {
    io_uring_prep_cancel(sqe, op, 0);
    io_uring_sqe_set_data64(sqe, kIgnoreTag);
  }

  void ArmWake() {
    io_uring_sqe* sqe = Entry();
    armed_ = sqe != nullptr;
    if (!armed_) return;
    io_uring_prep_read(sqe, event_.get(), &woken_, sizeof(woken_), 0);
    io_uring_sqe_set_data64(sqe, kWakeTag);
  }

  int Drain(Completion* completions, int max, bool* woken) {
    int count = 0;
    io_uring_cqe* cqe = nullptr;
    while (count < max && io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const uint64_t tag = cqe->user_data;
      const int result = cqe->res;
      const unsigned flags = cqe->flags;
      io_uring_cqe_seen(&ring_, cqe);
      if (tag == kIgnoreTag) continue;
      if (tag == kWakeTag) {
        *woken = true;
        ArmWake();
        continue;
      }
      completions[count++] = Completed(reinterpret_cast<IoOp*>(tag), result, flags);
    }
    return count;
  }

  // A send that failed may be held as well: the flag alone tells.
  Completion Completed(IoOp* op, int result, unsigned flags) {
    // Its cancel must not meet what the slot is used for next.
    if (!cancels_.empty()) cancels_.erase(std::remove(cancels_.begin(), cancels_.end(), op), cancels_.end());
    const bool release = (flags & IORING_CQE_F_NOTIF) != 0;
    op->in_flight = (flags & IORING_CQE_F_MORE) != 0;
    if (op->kind == IoOp::Kind::kWritable && result > 0) result = 0;
    if (release) result = (static_cast<uint32_t>(result) & kUsageCopied) != 0 ? 1 : 0;
    return {op, result, op->in_flight, release};
  }

  io_uring ring_;
  OwnedFd ring_fd_;  // only so that a forked child closes it
  OwnedFd event_;
  uint64_t woken_ = 0;
  bool zero_copy_ = false;
  bool armed_ = false;    // a read of event_ is with the kernel
  bool refused_ = false;  // the kernel took nothing at the latest call
  bool logged_ = false;
  std::deque<IoOp*> waiting_;  // for an entry
  std::deque<IoOp*> cancels_;  // of operations with the kernel, for an entry
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeUringEngine() { return MakeUringEngineFrom(FirstRung()); }

absl::StatusOr<std::unique_ptr<Engine>> MakeUringEngineFrom(int first_rung) {
  // Not EFD_NONBLOCK: before Linux 5.14 a ring's read of a non-blocking descriptor ends at once with EAGAIN.
  OwnedFd event(eventfd(0, EFD_CLOEXEC));
  if (!event.valid()) return ErrnoStatus(errno, "eventfd for a progress thread");
  io_uring ring;
  const absl::Status opened = OpenRing(&ring, first_rung);
  if (!opened.ok()) return opened;
  return std::unique_ptr<Engine>(new UringEngine(ring, std::move(event)));
}

int UringRung() {
  io_uring ring;
  int rung = FirstRung();
  if (SetUpRing(&ring, &rung) < 0) return -1;
  io_uring_queue_exit(&ring);
  return rung;
}

EngineChoice ProbeEngine(EngineChoice choice, std::string* reason) {
  if (choice == EngineChoice::kEpoll) {
    *reason = "TCPX_ENGINE=epoll";
    return choice;
  }
  const absl::Status status = TryUring();
  if (status.ok()) {
    *reason = choice == EngineChoice::kIoUring ? "TCPX_ENGINE=io_uring" : "the kernel offers it";
    return EngineChoice::kIoUring;
  }
  *reason = std::string(status.message());
  return EngineChoice::kEpoll;
}

}  // namespace tcpx
