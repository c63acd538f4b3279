#include "net_socket/health/health.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/string_view.h"
#include "common/dcheck.h"
#include "common/log.h"
#include "common/random.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

// Notices that wait for a slow peer. More are dropped: the lanes' own ends remain.
constexpr size_t kOutboxBytesMax = size_t{1} << 20;

std::string EncodeCounts(const std::vector<uint64_t>& counts) {
  return std::string(reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof(uint64_t));
}

std::vector<uint64_t> DecodeCounts(absl::string_view text) {
  std::vector<uint64_t> counts(text.size() / sizeof(uint64_t));
  if (!counts.empty()) std::memcpy(counts.data(), text.data(), counts.size() * sizeof(uint64_t));
  return counts;
}
// Kept for a connection that is expected: an honest peer says that it has parted or failed, and that it is closed.
constexpr size_t kEarlyNoticesMax = 2;

std::string Frame(FrameKind kind, const std::string& body) {
  FrameHeader header;
  header.kind = kind;
  header.length = static_cast<uint32_t>(body.size());
  std::string frame(kHeaderBytes, '\0');
  EncodeHeader(header, &frame[0]);
  return frame + body;
}

void TellEnd(Watched* comm, const absl::Status& end) {
  if (end.ok()) {
    comm->PeerEnded();
  } else {
    comm->PeerDied(end);
  }
}

}  // namespace

absl::Status HealthReader::Take(const char* data, size_t bytes, std::vector<HealthNotice>* notices) {
  return frames_.Take(data, bytes, [this, notices](const FrameHeader& header, absl::string_view body) {
    if (header.kind == FrameKind::kBye) bye_ = true;
    const bool parting = header.kind == FrameKind::kParting;
    if ((header.kind == FrameKind::kError || parting) && body.size() >= sizeof(ConnectionId)) {
      HealthNotice notice;
      notice.parting = parting;
      std::memcpy(notice.connection.data(), body.data(), notice.connection.size());
      notice.cause = CauseText(body.substr(notice.connection.size()));
      notices->push_back(std::move(notice));
    }
    if (header.kind == FrameKind::kLeft && body.size() >= sizeof(ConnectionId)) {
      HealthNotice notice;
      std::memcpy(notice.connection.data(), body.data(), notice.connection.size());
      notice.left = true;
      notice.taken = DecodeCounts(body.substr(notice.connection.size()));
      notices->push_back(std::move(notice));
    }
    return absl::OkStatus();
  });
}

void Health::MoveToLocked(HealthState to) {
  TCPX_DCHECK(MayMove(state_, to));
  state_ = to;
}

bool Health::up_in_loop() {
  MutexLock lock(mutex_);
  return state_ == HealthState::kUp;
}

void Health::UnuseInLoop() {
  if (--uses_ > 0 || !dialled_) return;
  CloseInLoop();
  hub_->ForgetInLoop(this);
}

void Health::AwaitInLoop(Waiter* waiter) {
  if (up_in_loop()) {
    waiter->HealthUpInLoop();
    return;
  }
  waiters_.push_back(waiter);
  if (dialler_ != nullptr) return;
  dialler_ = waiter;
  waiter->DialHealthInLoop();
}

void Health::GiveUpInLoop(Waiter* waiter) {
  waiters_.erase(std::remove(waiters_.begin(), waiters_.end(), waiter), waiters_.end());
  if (dialler_ != waiter) return;
  dialler_ = waiters_.empty() ? nullptr : waiters_.front();
  if (dialler_ != nullptr) dialler_->DialHealthInLoop();
}

void Health::UpInLoop(OwnedFd fd, int64_t peer_timeout_ns) {
  const absl::Status alive = SetKeepAlive(fd.get(), peer_timeout_ns);
  if (!alive.ok()) TCPX_INFO("%s; a peer host that vanishes is not noticed", std::string(alive.message()));
  const int number = fd.get();
  TCPX_TRACE("health socket %s %s %s", LocalAddress(number).value_or(SocketAddress()).ToString(),
             dialled_ ? "to" : "from", PeerAddress(number).value_or(SocketAddress()).ToString());
  {
    MutexLock lock(mutex_);
    MoveToLocked(HealthState::kUp);
    fd_ = std::move(fd);
    reader_ = HealthReader();
    outbox_.clear();
    said_left_ = false;
    end_.reset();
  }
  const std::shared_ptr<Health> self = shared_from_this();
  if (!reactor_->WatchInLoop(number, EPOLLIN | EPOLLRDHUP, this).ok()) EndInLoop();
  dialler_ = nullptr;
  std::deque<Waiter*> waiters;
  waiters.swap(waiters_);
  for (Waiter* waiter : waiters) waiter->HealthUpInLoop();
}

void Health::ReplaceInLoop(OwnedFd fd, int64_t peer_timeout_ns) {
  Poll();
  {
    MutexLock lock(mutex_);
    if (state_ == HealthState::kUp) {
      MoveToLocked(HealthState::kDown);
      reactor_->UnwatchInLoop(fd_.get());
    }
  }
  UpInLoop(std::move(fd), peer_timeout_ns);
}

void Health::CloseInLoop() {
  std::vector<HealthNotice> unheard;
  MutexLock lock(mutex_);
  const HealthState was = state_;
  if (was != HealthState::kClosed) MoveToLocked(HealthState::kClosed);
  if (was != HealthState::kUp) return;
  ReadLocked(&unheard);  // Closing with something unread would reset the socket, and our bye with it.
  SendLocked(Frame(FrameKind::kBye, ""));
  reactor_->UnwatchInLoop(fd_.get());
  fd_.reset();
}

void Health::ExpectInLoop(const ConnectionId& id) {
  UseInLoop();
  MutexLock lock(mutex_);
  members_[id];
}

void Health::JoinInLoop(const ConnectionId& id, std::shared_ptr<CommLink> link) {
  std::vector<HealthNotice> notices;
  std::optional<absl::Status> end;
  bool expected = false;
  {
    MutexLock lock(mutex_);
    expected = members_.contains(id);
    Member& member = members_[id];
    member.link = link;
    notices.swap(member.notices);
    if (state_ != HealthState::kUp && end_.has_value() && !OrderlyLocked()) end = end_;
  }
  if (!expected) UseInLoop();
  Deliver(notices);
  if (end.has_value()) link->With([&end](Watched* comm) { TellEnd(comm, *end); });
}

void Health::LeaveInLoop(const ConnectionId& id) {
  {
    MutexLock lock(mutex_);
    members_.erase(id);
  }
  UnuseInLoop();
}

void Health::OnEvents(uint32_t) {
  const std::shared_ptr<Health> self = shared_from_this();
  FlushInLoop();
  Poll();
  bool ended = false;
  {
    MutexLock lock(mutex_);
    ended = end_.has_value();
  }
  if (ended) EndInLoop();
}

void Health::ReadLocked(std::vector<HealthNotice>* notices) {
  char buffer[4096];
  while (fd_.valid() && !end_.has_value()) {
    const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got > 0) {
      const absl::Status taken = reader_.Take(buffer, static_cast<size_t>(got), notices);
      if (!taken.ok()) end_ = taken;
      continue;
    }
    end_ = got < 0 ? ErrnoStatus(errno, "the health socket to the peer broke") : absl::OkStatus();
  }
}

void Health::Poll() {
  std::vector<HealthNotice> notices;
  {
    MutexLock lock(mutex_);
    ReadLocked(&notices);
  }
  Deliver(notices);
}

void Health::Ask() {
  Poll();
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp || !end_.has_value()) return;
  reactor_->Post([self = shared_from_this()] {
    if (self->up_in_loop()) self->OnEvents(0);
  });
}

bool Health::PeerVanished() {
  MutexLock lock(mutex_);
  return end_.has_value() && end_->ok() && !reader_.bye();
}

std::shared_ptr<CommLink> Health::HearerOfLocked(const HealthNotice& notice) {
  auto found = members_.find(notice.connection);
  if (found == members_.end()) return nullptr;
  Member& member = found->second;
  if (member.link == nullptr && member.notices.size() < kEarlyNoticesMax) member.notices.push_back(notice);
  return member.link;
}

void Health::Deliver(const std::vector<HealthNotice>& notices) {
  for (const HealthNotice& notice : notices) {
    std::shared_ptr<CommLink> link;
    {
      MutexLock lock(mutex_);
      link = HearerOfLocked(notice);
    }
    if (link == nullptr) continue;
    link->With([&notice](Watched* comm) {
      if (notice.left) {
        comm->PeerLeft(notice.taken);
      } else if (notice.parting) {
        comm->PeerParted(notice.cause);
      } else {
        comm->PeerFailed(notice.cause);
      }
    });
  }
}

// A peer that has closed resets what it is told of closing.
bool Health::OrderlyLocked() { return reader_.bye() && (!end_.has_value() || end_->ok() || said_left_); }

void Health::EndInLoop() {
  std::vector<std::shared_ptr<CommLink>> links;
  absl::Status end;
  bool orderly = false;
  {
    MutexLock lock(mutex_);
    if (state_ == HealthState::kUp) {
      MoveToLocked(HealthState::kDown);
      reactor_->UnwatchInLoop(fd_.get());
      fd_.reset();
    }
    for (auto& [id, member] : members_) {
      if (member.link != nullptr) links.push_back(member.link);
    }
    end = end_.value_or(absl::OkStatus());
    orderly = OrderlyLocked();
  }
  hub_->ForgetInLoop(this);
  if (orderly) return;
  for (auto& link : links) {
    link->With([&end](Watched* comm) { TellEnd(comm, end); });
  }
}

void Health::SendLocked(const std::string& frame) {
  if (outbox_.size() > kOutboxBytesMax) return;
  outbox_.append(frame);
  while (!outbox_.empty()) {
    const ssize_t sent = send(fd_.get(), outbox_.data(), outbox_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;
    outbox_.erase(0, static_cast<size_t>(sent));
  }
}

bool Health::Notify(const ConnectionId& id, const std::string& cause, bool parting) {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp || end_.has_value()) return false;
  std::string body(reinterpret_cast<const char*>(id.data()), id.size());
  body.append(cause, 0, kCauseBytesMax);
  SayLocked(Frame(parting ? FrameKind::kParting : FrameKind::kError, body));
  return true;
}

void Health::NotifyLeft(const ConnectionId& id, const std::vector<uint64_t>& taken) {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp || end_.has_value()) return;
  said_left_ = true;
  const std::string connection(reinterpret_cast<const char*>(id.data()), id.size());
  SayLocked(Frame(FrameKind::kLeft, connection + EncodeCounts(taken)));
}

void Health::SayLocked(const std::string& frame) {
  SendLocked(frame);
  if (outbox_.empty()) return;
  reactor_->Post([self = shared_from_this()] { self->FlushInLoop(); });
}

void Health::FlushInLoop() {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp) return;
  const bool waited = !outbox_.empty();
  SendLocked("");
  const uint32_t writable = outbox_.empty() ? 0u : static_cast<uint32_t>(EPOLLOUT);
  if (waited) reactor_->ChangeInLoop(fd_.get(), EPOLLIN | EPOLLRDHUP | writable);
}

std::shared_ptr<Health> HealthHub::UseDialledInLoop(int device, const SocketAddress& peer) {
  std::shared_ptr<Health>& health = dialled_[Key(device, peer.ToString())];
  if (health == nullptr) {
    uint64_t tag = 0;
    (void)FillRandom(&tag, sizeof(tag));  // Where that fails, the dial's own identity fails too.
    health = std::make_shared<Health>(this, reactor_, tag, true);
  }
  health->UseInLoop();
  return health;
}

std::shared_ptr<Health> HealthHub::FindAcceptedInLoop(uint64_t tag) {
  auto found = accepted_.find(tag);
  return found == accepted_.end() ? nullptr : found->second;
}

void HealthHub::AcceptInLoop(uint64_t tag, OwnedFd fd, int64_t peer_timeout_ns) {
  std::shared_ptr<Health> health = FindAcceptedInLoop(tag);
  if (health != nullptr) return health->ReplaceInLoop(std::move(fd), peer_timeout_ns);
  health = std::make_shared<Health>(this, reactor_, tag, false);
  accepted_[tag] = health;
  health->UpInLoop(std::move(fd), peer_timeout_ns);
}

void HealthHub::LookInLoop(uint64_t tag) {
  const std::shared_ptr<Health> health = FindAcceptedInLoop(tag);
  if (health != nullptr) health->OnEvents(0);
}

void HealthHub::ForgetInLoop(Health* health) {
  for (auto it = dialled_.begin(); it != dialled_.end(); ++it) {
    if (it->second.get() != health) continue;
    dialled_.erase(it);
    return;
  }
  auto found = accepted_.find(health->tag());
  if (found != accepted_.end() && found->second.get() == health) accepted_.erase(found);
}

void HealthHub::DropUnusedInLoop(const std::shared_ptr<Health>& health) {
  if (health == nullptr || health->used_in_loop()) return;
  health->CloseInLoop();
  ForgetInLoop(health.get());
}

void HealthHub::CloseInLoop() {
  for (auto& [key, health] : dialled_) health->CloseInLoop();
  for (auto& [tag, health] : accepted_) health->CloseInLoop();
  dialled_.clear();
  accepted_.clear();
}

}  // namespace tcpx
