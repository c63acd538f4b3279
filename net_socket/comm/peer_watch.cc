#include "net_socket/comm/peer_watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "common/status.h"
#include "net_socket/engine/socket_swap.h"
#include "net_socket/message/failure_kind.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

constexpr size_t kReadBytes = 4096;
// Reads in a row, so that a peer that floods one lane does not keep the reactor from all others.
constexpr int kReadsMax = 16;

}  // namespace

// With credits isend is the one that reads, and it allocates nothing.
RecordReader::RecordReader(CreditBook* credits)
    : credits_(credits),
      frames_("a message on the receiver's side", credits == nullptr ? 0 : kReadBytes + kCreditBytesMax) {}

absl::Status RecordReader::Take(const char* data, size_t bytes) {
  return frames_.Take(data, bytes, [this](const FrameHeader& header, absl::string_view body) {
    if (header.kind == FrameKind::kCredit && credits_ != nullptr) {
      const char* wrong = credits_->Announce(header, body.data());
      if (wrong != nullptr) return GarbageError(wrong);
    }
    if (header.kind == FrameKind::kError) return PeerError(CauseText(body));
    return absl::OkStatus();
  });
}

// One descriptor in the reactor.
class PeerWatch::Lane final : public Reactor::Handler {
 public:
  Lane(PeerWatch* watch, int fd, int lane, CreditBook* credits, std::unique_ptr<Opener> opener)
      : watch_(watch),
        fd_(fd),
        lane_(lane),
        events_(EPOLLRDHUP | EPOLLET | (credits == nullptr ? uint32_t{EPOLLIN} : 0)),
        reader_(credits),
        opener_(std::move(opener)) {}

  void OnEvents(uint32_t) override {
    SocketEnd end = SocketEnd::kNone;
    const absl::Status status = watch_->ReadInLoop(this, &end);
    if (status.ok() && more_) watch_->reactor_->ChangeInLoop(fd_, events_);  // Reports what is left as a new edge.
    if (status.ok()) return;
    UnwatchInLoop();
    watch_->Report(status, lane_, end);
  }

  void WatchInLoop() { (void)watch_->reactor_->WatchInLoop(fd_, events_, this); }
  void UnwatchInLoop() { watch_->reactor_->UnwatchInLoop(fd_); }

  absl::StatusOr<uint32_t> Freeze() {
    std::string rest;
    FreezeSocket(fd_, &rest);
    const absl::Status status = Take(rest.data(), rest.size());
    frozen_ = opener_ != nullptr;
    if (!status.ok()) return status;
    return taken_;
  }

  void OpenBy(std::unique_ptr<Opener> opener) {
    opener_ = std::move(opener);
    frozen_ = false;
  }

  void GiveBack() {
    frozen_ = frozen_ || opener_ != nullptr;
    opener_ = nullptr;
  }

  // All that has arrived, and whether the socket has ended after it.
  absl::Status Read(SocketEnd* end) {
    char buffer[kReadBytes];
    more_ = false;
    if (frozen_) return absl::OkStatus();
    for (int i = 0; i < kReadsMax; ++i) {
      const ssize_t got = recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got > 0) {
        absl::Status status = Take(buffer, static_cast<size_t>(got));
        if (!status.ok()) return status;
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && IsTransientErrno(errno)) return absl::OkStatus();
      const bool cut = opener_ != nullptr && opener_->cut();
      *end = got == 0 && !cut ? SocketEnd::kInOrder : SocketEnd::kBroken;
      if (got == 0) return absl::UnavailableError(cut ? kCutRecord : "the peer closed the connection");
      return ErrnoStatus(errno, "the connection to the peer broke");
    }
    more_ = true;
    return absl::OkStatus();
  }

 private:
  absl::Status Take(const char* data, size_t bytes) {
    if (opener_ == nullptr) {
      taken_ += static_cast<uint32_t>(bytes);
      return reader_.Take(data, bytes);
    }
    text_.clear();
    const bool authentic = opener_->OpenAll(data, bytes, &text_);
    opener_->GiveBack();
    taken_ += static_cast<uint32_t>(text_.size());
    const absl::Status status = reader_.Take(text_.data(), text_.size());
    return authentic ? status : FailureOf(FailureKind::kForged, kNotAuthentic);
  }

  PeerWatch* const watch_;
  const int fd_;
  const int lane_;
  const uint32_t events_;  // credits are read by isend: there only the end is watched
  bool more_ = false;      // the last Read left something, perhaps
  uint32_t taken_ = 0;     // in all, modulo 2^32
  RecordReader reader_;
  std::unique_ptr<Opener> opener_;  // null: the socket is not sealed
  std::string text_;                // what it opened last
  bool frozen_ = false;             // the next socket's records are not this opener's
};

void PeerLoss::Note(absl::Status status, int lane, bool in_order) {
  State none = State::kNone;
  if (!state_.compare_exchange_strong(none, State::kBeingWritten, std::memory_order_relaxed)) return;
  status_ = std::move(status);
  lane_ = lane;
  in_order_ = in_order;
  state_.store(State::kKnown, std::memory_order_release);
}

PeerWatch::PeerWatch(Owner* owner, Reactor* reactor, int lanes, int max_receives)
    : owner_(tie_.To(owner)), reactor_(reactor), lanes_(static_cast<size_t>(lanes)) {
  if (max_receives > 1) credits_ = std::make_unique<CreditBook>(max_receives);
}

PeerWatch::~PeerWatch() = default;

void PeerWatch::WatchInLoop(int lane, int fd, std::unique_ptr<Opener> opener) {
  auto& watched = lanes_[static_cast<size_t>(lane)];
  if (watched == nullptr) {
    watched = std::make_unique<Lane>(this, fd, lane, lane == 0 ? credits_.get() : nullptr, std::move(opener));
  } else if (opener != nullptr) {
    MutexLock lock(credit_mutex_);
    watched->OpenBy(std::move(opener));
  }
  watched->WatchInLoop();
}

absl::Status PeerWatch::ReadInLoop(Lane* lane, SocketEnd* end) {
  if (credits_ == nullptr || lane != lanes_[0].get()) return lane->Read(end);
  MutexLock lock(credit_mutex_);
  return lane->Read(end);
}

bool PeerWatch::TakeCredit(int32_t tag, uint64_t* sequence) {
  absl::Status status;
  SocketEnd end = SocketEnd::kNone;
  {
    if (!credit_mutex_.try_lock()) return false;
    MutexLock lock(credit_mutex_, std::adopt_lock);
    if (credits_->Take(tag, sequence)) return true;
    status = lanes_[0]->Read(&end);
    if (status.ok()) return credits_->Take(tag, sequence);
  }
  Report(std::move(status), 0, end);
  return false;
}

void PeerWatch::Report(absl::Status status, int lane, SocketEnd end) {
  owner_.With([&](Owner* owner) {
    const bool in_order = end == SocketEnd::kInOrder;
    if (end != SocketEnd::kNone && owner->LaneBroke(status, lane, in_order)) return;
    owner->PeerGone(std::move(status), lane, in_order);
  });
}

absl::StatusOr<uint32_t> PeerWatch::FreezeInLoop(int lane) {
  Lane* const watched = lanes_[static_cast<size_t>(lane)].get();
  watched->UnwatchInLoop();
  if (credits_ != nullptr && lane == 0) {
    MutexLock lock(credit_mutex_);
    return watched->Freeze();
  }
  // Nothing but an error is said there; what else came is reported.
  SocketEnd end = SocketEnd::kNone;
  const absl::Status status = watched->Read(&end);
  if (!status.ok() && end == SocketEnd::kNone) return status;
  return 0;
}

void PeerWatch::CloseInLoop(int lane) {
  MutexLock lock(credit_mutex_);
  lanes_[static_cast<size_t>(lane)]->GiveBack();
}

}  // namespace tcpx
