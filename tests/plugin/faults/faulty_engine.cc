#include "tests/plugin/faults/faulty_engine.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/plugin/faults/faults.h"
#include "tests/support/fake_engine.h"

namespace tcpx {

// The linker's names (--wrap, ld(1)) for MakeEpollEngine itself, and for its replacement.
absl::StatusOr<std::unique_ptr<Engine>> RealMakeEpollEngine() asm("__real__ZN4tcpx15MakeEpollEngineEv");
absl::StatusOr<std::unique_ptr<Engine>> MakeFaultyEngine() asm("__wrap__ZN4tcpx15MakeEpollEngineEv");

namespace {

constexpr int kBatch = 64;
constexpr int64_t kRoundNs = 200'000;
constexpr size_t kStepBytesMax = 32 << 10;  // of the fake engine

EngineFaults g_engine_faults;

class FaultyEngine final : public Engine {
 public:
  FaultyEngine(std::unique_ptr<Engine> inner, bool zero_copy) : inner_(std::move(inner)), zero_copy_(zero_copy) {}

  ~FaultyEngine() override {
    if (!flying_.empty() || !lost_.empty() || !late_.empty() || !pinned_.empty() || !ready_.empty()) {
      Faults::Get().Violation("an engine has ended with operations");
    }
  }

  const char* name() const override { return "faulty"; }
  bool zero_copy() const override { return zero_copy_; }

  void Submit(IoOp* op) override {
    op->in_flight = true;
    op->cancelling = false;
    const bool early = op->kind == IoOp::Kind::kWritable && Faults::Get().Duplicate(op->fd);
    const Fault fault = Faults::Get().Next(op->fd, DirectionOf(*op), true);
    if (early || fault.kind == Fault::Kind::kZero) {
      ready_.push_back({op, 0, false, false});
    } else if (fault.kind == Fault::Kind::kAgain || fault.kind == Fault::Kind::kErrno) {
      ready_.push_back({op, -fault.err, false, false});
    } else {
      if (fault.kind == Fault::Kind::kReset) ResetSocket(op->fd);
      Start(op, fault.kind == Fault::Kind::kShort ? fault.bytes : SIZE_MAX);
    }
  }

  void Cancel(IoOp* op) override {
    if (!op->in_flight || op->cancelling) return;
    op->cancelling = true;
    const auto lost = lost_.find(op);
    if (lost != lost_.end()) {
      ready_.push_back(lost->second);
      lost_.erase(lost);
      return;
    }
    const auto flying = flying_.find(op);
    if (flying != flying_.end()) inner_->Cancel(&flying->second->op);
  }

  void Forget(int fd) override { inner_->Forget(fd); }

  int Reap(Completion* completions, int max, int64_t timeout_ns) override {
    if (!ready_.empty()) timeout_ns = 0;
    const bool rounds = !late_.empty() || !pinned_.empty() || !lost_.empty();
    if (rounds && (timeout_ns < 0 || timeout_ns > kRoundNs)) timeout_ns = kRoundNs;
    Completion of_inner[kBatch];
    int got = 0;
    {
      const Faultless faultless;
      got = inner_->Reap(of_inner, kBatch, timeout_ns);
    }
    for (int i = 0; i < got; ++i) Ended(of_inner[i]);
    EndRound();
    int count = 0;
    while (count < max && !ready_.empty()) {
      completions[count] = Delivered(ready_.front());
      ready_.pop_front();
      ++count;
    }
    return count;
  }

  void Wake() override { inner_->Wake(); }

 private:
  struct Flying {
    IoOp op;  // the inner engine's
    IoOp* outer = nullptr;
  };
  struct Late {
    Completion completion;
    uint64_t rounds = 0;
  };
  // Bytes that are still the kernel's, as they were when it took them.
  struct Pinned {
    IoOp* op = nullptr;
    std::string bytes;
    uint64_t rounds = 0;
  };

  static FlowDirection DirectionOf(const IoOp& op) {
    switch (op.kind) {
      case IoOp::Kind::kReceive:
        return FlowDirection::kReceive;
      case IoOp::Kind::kWritable:
        return FlowDirection::kOther;
      default:
        return FlowDirection::kSend;
    }
  }

  void Start(IoOp* op, size_t bytes_max) {
    auto flying = std::make_unique<Flying>();
    flying->outer = op;
    IoOp& inner = flying->op;
    inner.kind = op->kind == IoOp::Kind::kSendZeroCopy ? IoOp::Kind::kSend : op->kind;
    inner.fd = op->fd;
    inner.owner = flying.get();
    for (int i = 0; i < op->iov_count && bytes_max > 0; ++i) {
      const size_t length = std::min(op->iov[i].iov_len, bytes_max);
      inner.iov[inner.iov_count++] = {op->iov[i].iov_base, length};
      bytes_max -= length;
    }
    inner_->Submit(&inner);
    flying_[op] = std::move(flying);
  }

  void Ended(const Completion& of_inner) {
    IoOp* const op = static_cast<Flying*>(of_inner.op->owner)->outer;
    flying_.erase(op);
    const Completion completion{op, of_inner.result, false, false};
    if (!op->cancelling && Faults::Get().Lose(op->fd)) {
      lost_[op] = completion;
      return;
    }
    const uint64_t rounds = op->cancelling ? 0 : Faults::Get().Late(op->fd);
    if (rounds > 0) {
      late_.push_back({completion, rounds});
    } else {
      ready_.push_back(completion);
    }
  }

  void EndRound() {
    FindWithoutSocket();
    for (size_t i = 0; i < late_.size();) {
      if (--late_[i].rounds > 0 && !late_[i].completion.op->cancelling) {
        ++i;
        continue;
      }
      ready_.push_back(late_[i].completion);
      late_.erase(late_.begin() + static_cast<ptrdiff_t>(i));
    }
    for (size_t i = 0; i < pinned_.size();) {
      if (pinned_[i].rounds-- > 0) {
        ++i;
        continue;
      }
      if (BytesOf(*pinned_[i].op, pinned_[i].bytes.size()) != pinned_[i].bytes) {
        Faults::Get().Violation("bytes changed that the kernel still held");
      }
      ready_.push_back({pinned_[i].op, static_cast<int>(pinned_[i].bytes.size() % 2), false, true});
      pinned_.erase(pinned_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  // What a kernel that holds a sender's bytes gives back at the latest when their socket is reset.
  void FindWithoutSocket() {
    for (auto lost = lost_.begin(); lost != lost_.end();) {
      sockaddr_storage peer;
      socklen_t length = sizeof(peer);
      const bool pinned = lost->first->kind == IoOp::Kind::kSendZeroCopy;
      if (!pinned || getpeername(lost->first->fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0) {
        ++lost;
        continue;
      }
      ready_.push_back(lost->second);
      lost = lost_.erase(lost);
    }
  }

  Completion Delivered(Completion completion) {
    IoOp* const op = completion.op;
    if (op->kind == IoOp::Kind::kSendZeroCopy && !completion.release && completion.result > 0) {
      completion.held = true;
      pinned_.push_back({op, BytesOf(*op, static_cast<size_t>(completion.result)), Faults::Get().Late(op->fd)});
    }
    op->in_flight = completion.held;
    return completion;
  }

  static std::string BytesOf(const IoOp& op, size_t count) {
    std::string bytes;
    for (int i = 0; i < op.iov_count && bytes.size() < count; ++i) {
      bytes.append(static_cast<const char*>(op.iov[i].iov_base), std::min(op.iov[i].iov_len, count - bytes.size()));
    }
    return bytes;
  }

  const std::unique_ptr<Engine> inner_;
  const bool zero_copy_;
  std::map<IoOp*, std::unique_ptr<Flying>> flying_;
  std::map<IoOp*, Completion> lost_;
  std::vector<Late> late_;
  std::vector<Pinned> pinned_;
  std::deque<Completion> ready_;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeInner() {
  switch (g_engine_faults.inner) {
    case InnerEngine::kFake:
      return MakeFakeEngine(g_engine_faults.seed, kStepBytesMax);
    case InnerEngine::kEpoll:
      return RealMakeEpollEngine();
    case InnerEngine::kIoUring:
      break;
  }
  auto engine = MakeUringEngine();
  return engine.ok() ? std::move(engine) : RealMakeEpollEngine();
}

}  // namespace

void SetEngineFaults(const EngineFaults& faults) { g_engine_faults = faults; }

absl::StatusOr<std::unique_ptr<Engine>> MakeFaultyEngine() {
  auto inner = MakeInner();
  if (!inner.ok()) return inner.status();
  return std::unique_ptr<Engine>(new FaultyEngine(*std::move(inner), g_engine_faults.zero_copy));
}

}  // namespace tcpx
