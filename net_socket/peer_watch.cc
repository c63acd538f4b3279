#include "net_socket/peer_watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "net_socket/send_comm.h"

namespace tcpx {
namespace {

constexpr uint32_t kWatched = EPOLLIN | EPOLLRDHUP | EPOLLET;
// Reads in a row, so that a peer that floods one lane does not keep the reactor from all others.
constexpr int kReadsMax = 16;

}  // namespace

absl::Status RecordReader::Take(const char* data, size_t bytes) {
  pending_.append(data, bytes);
  while (pending_.size() >= kHeaderBytes) {
    FrameHeader header;
    const char* wrong = DecodeHeader(pending_.data(), &header);
    if (wrong == nullptr && header.kind == FrameKind::kChunk) wrong = "a message on the receiver's side";
    if (wrong != nullptr) return absl::UnavailableError(absl::StrCat("the peer sent garbage: ", wrong));
    const size_t frame = kHeaderBytes + header.length + header.padding;
    if (pending_.size() < frame) break;
    if (header.kind == FrameKind::kError) {
      const absl::string_view body = absl::string_view(pending_).substr(kHeaderBytes, header.length);
      return absl::UnavailableError(absl::StrCat("the peer failed: ", CauseText(body)));
    }
    pending_.erase(0, frame);
  }
  return absl::OkStatus();
}

// One descriptor in the reactor.
class PeerWatch::Lane final : public Reactor::Handler {
 public:
  Lane(PeerWatch* watch, Reactor* reactor, int fd, int lane) : watch_(watch), reactor_(reactor), fd_(fd), lane_(lane) {}

  void OnEvents(uint32_t) override {
    const absl::Status status = Read();
    if (status.ok() && more_) reactor_->ChangeInLoop(fd_, kWatched);  // Reports what is left as a new edge.
    if (status.ok()) return;
    reactor_->UnwatchInLoop(fd_);
    watch_->Report(status, lane_);
  }

 private:
  absl::Status Read() {
    char buffer[4096];
    more_ = false;
    for (int i = 0; i < kReadsMax; ++i) {
      const ssize_t got = recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got > 0) {
        absl::Status status = reader_.Take(buffer, static_cast<size_t>(got));
        if (!status.ok()) return status;
        continue;
      }
      if (got == 0) return absl::UnavailableError("the peer closed the connection");
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::OkStatus();
      return ErrnoStatus(errno, "the connection to the peer broke");
    }
    more_ = true;
    return absl::OkStatus();
  }

  PeerWatch* const watch_;
  Reactor* const reactor_;
  const int fd_;
  const int lane_;
  bool more_ = false;  // the last Read left something, perhaps
  RecordReader reader_;
};

PeerWatch::PeerWatch(SendComm* comm) : comm_(comm) {}

PeerWatch::~PeerWatch() = default;

void PeerWatch::StartInLoop(Reactor* reactor, const std::vector<int>& fds) {
  for (size_t i = 0; i < fds.size(); ++i) {
    auto lane = std::make_unique<Lane>(this, reactor, fds[i], static_cast<int>(i));
    if (!reactor->WatchInLoop(fds[i], kWatched, lane.get()).ok()) continue;
    lanes_.push_back(std::move(lane));
  }
}

void PeerWatch::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  comm_ = nullptr;
}

void PeerWatch::Report(absl::Status status, int lane) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ != nullptr) comm_->PeerGone(std::move(status), lane);
}

}  // namespace tcpx
