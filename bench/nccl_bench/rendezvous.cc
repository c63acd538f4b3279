#include "bench/nccl_bench/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/status.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// Each rank sends it first. The number tells a rank of this build from a stranger.
struct Hello {
  uint64_t magic = 0x7463707862656e32;  // "tcpxben2"
  int32_t rank = 0;
  int32_t size = 0;
};

// What rank 0 answers.
enum class Answer : int32_t { kWelcome = 1, kWrongSize, kTakenRank };

constexpr int64_t kStrangerPatience = kSecond;
constexpr int64_t kDialPause = 100 * kMillisecond;

int64_t Deadline(int64_t patience_ns) { return MonotonicNanos() + patience_ns; }

// False at the deadline.
bool Await(int fd, short events, int64_t deadline_ns) {
  for (;;) {
    const int64_t left_ns = std::max<int64_t>(deadline_ns - MonotonicNanos(), 0);
    pollfd wait = {fd, events, 0};
    const int ready = poll(&wait, 1, static_cast<int>(left_ns / kMillisecond) + 1);
    if (ready > 0) return true;
    if (MonotonicNanos() >= deadline_ns) return false;
  }
}

absl::Status Late(const char* what) {
  return absl::DeadlineExceededError(absl::StrCat("rendezvous: no answer in time while waiting for ", what));
}

absl::Status Transferred(ssize_t moved, const char* peer) {
  if (moved > 0 || (moved < 0 && (errno == EINTR || errno == EAGAIN))) return absl::OkStatus();
  if (moved == 0 || errno == EPIPE || errno == ECONNRESET) {
    return absl::UnavailableError(absl::StrCat("rendezvous: ", peer, " is gone"));
  }
  return ErrnoStatus(errno, absl::StrCat("rendezvous: ", peer));
}

absl::Status SendAll(int fd, const void* data, size_t bytes, int64_t deadline_ns, const char* peer) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    if (!Await(fd, POLLOUT, deadline_ns)) return Late(peer);
    const ssize_t moved = send(fd, next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (absl::Status status = Transferred(moved, peer); !status.ok()) return status;
    next += std::max<ssize_t>(moved, 0);
    bytes -= static_cast<size_t>(std::max<ssize_t>(moved, 0));
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int fd, void* data, size_t bytes, int64_t deadline_ns, const char* peer) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    if (!Await(fd, POLLIN, deadline_ns)) return Late(peer);
    const ssize_t moved = recv(fd, next, bytes, MSG_DONTWAIT);
    if (absl::Status status = Transferred(moved, peer); !status.ok()) return status;
    next += std::max<ssize_t>(moved, 0);
    bytes -= static_cast<size_t>(std::max<ssize_t>(moved, 0));
  }
  return absl::OkStatus();
}

std::string RankName(size_t rank) { return absl::StrCat("rank ", rank); }

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// IPv6 that takes IPv4 too, where the host has it.
OwnedFd BoundSocket(int family, int port) {
  OwnedFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  const int on = 1;
  const int off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  sockaddr_in any4 = {};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  if (family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  const int failed = family == AF_INET6 ? bind(fd.get(), reinterpret_cast<sockaddr*>(&any6), sizeof(any6))
                                        : bind(fd.get(), reinterpret_cast<sockaddr*>(&any4), sizeof(any4));
  if (failed != 0) {
    const int err = errno;
    fd.reset();
    errno = err;
  }
  return fd;
}

OwnedFd DialOnce(const addrinfo& address, int64_t deadline_ns) {
  OwnedFd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  int err = errno;
  socklen_t length = sizeof(err);
  if (err == EINPROGRESS) {
    err = ETIMEDOUT;
    if (Await(fd.get(), POLLOUT, deadline_ns)) getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &err, &length);
  }
  if (err == 0) return fd;
  errno = err;
  return OwnedFd();
}

std::string Master(const Job& job) { return absl::StrCat(job.master_host, " port ", job.master_port); }

// kUnavailable for all that may be better the next time: a pod's name, too, may appear only after the pod.
absl::StatusOr<OwnedFd> Connect(const Job& job, int64_t deadline_ns) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(job.master_host.c_str(), absl::StrCat(job.master_port).c_str(), &hints, &list);
  if (failed != 0) return absl::UnavailableError(absl::StrCat(Master(job), ": ", gai_strerror(failed)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, freeaddrinfo);
  int err = 0;
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    OwnedFd fd = DialOnce(*address, deadline_ns);
    err = errno;
    if (!fd) continue;
    NoDelay(fd.get());
    return fd;
  }
  return absl::UnavailableError(absl::StrCat(Master(job), ": ", ErrnoText(err)));
}

}  // namespace

absl::StatusOr<Listener> ListenForRanks(int port) {
  Listener listener;
  listener.fd = BoundSocket(AF_INET6, port);
  if (!listener.fd) listener.fd = BoundSocket(AF_INET, port);
  if (!listener.fd || listen(listener.fd.get(), SOMAXCONN) != 0) {
    return ErrnoStatus(errno, absl::StrCat("rendezvous: listen on port ", port));
  }
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  // The port has the same place in both families.
  listener.port = ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  return listener;
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::Meet(const Job& job, int timeout_s, OwnedFd listener) {
  std::unique_ptr<Rendezvous> met(new Rendezvous(job, timeout_s));
  absl::Status status;
  if (job.rank != 0) {
    status = met->Dial();
  } else if (job.size > 1) {
    if (!listener) {
      absl::StatusOr<Listener> made = ListenForRanks(job.master_port);
      if (!made.ok()) return made.status();
      listener = std::move(made->fd);
    }
    status = met->Gather(std::move(listener));
  }
  if (!status.ok()) return status;
  return met;
}

absl::Status Rendezvous::Gather(OwnedFd listener) {
  peers_.resize(static_cast<size_t>(job_.size));
  arrived_ = 1;
  const int64_t deadline = Deadline(timeout_s_ * kSecond);
  while (arrived_ < job_.size) {
    if (!Await(listener.get(), POLLIN, deadline)) {
      return absl::DeadlineExceededError(
          absl::StrCat("rendezvous: after ", timeout_s_, " s only ", arrived_, " of ", job_.size, " ranks came"));
    }
    OwnedFd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) continue;
    if (absl::Status status = Greet(std::move(fd)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// A stranger is no error, but a rank that can't belong to this job is.
absl::Status Rendezvous::Greet(OwnedFd fd) {
  NoDelay(fd.get());
  Hello hello;
  const int64_t deadline = Deadline(kStrangerPatience);
  if (!ReceiveAll(fd.get(), &hello, sizeof(hello), deadline, "a hello").ok()) return absl::OkStatus();
  if (hello.magic != Hello().magic || hello.rank < 1) return absl::OkStatus();
  Answer answer = Answer::kWelcome;
  if (hello.size != job_.size || hello.rank >= job_.size) {
    answer = Answer::kWrongSize;
  } else if (peers_[static_cast<size_t>(hello.rank)]) {
    answer = Answer::kTakenRank;
  }
  const std::string peer = RankName(static_cast<size_t>(hello.rank));
  absl::Status status = SendAll(fd.get(), &answer, sizeof(answer), deadline, peer.c_str());
  if (answer == Answer::kWrongSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("rendezvous: ", peer, " belongs to a job of ", hello.size, " ranks, this one has ", job_.size));
  }
  if (answer == Answer::kTakenRank) {
    return absl::InvalidArgumentError(absl::StrCat("rendezvous: ", peer, " came twice: do two jobs share a port?"));
  }
  if (!status.ok()) return status;
  peers_[static_cast<size_t>(hello.rank)] = std::move(fd);
  ++arrived_;
  return absl::OkStatus();
}

absl::Status Rendezvous::Dial() {
  const int64_t deadline = Deadline(timeout_s_ * kSecond);
  absl::Status status;
  for (;;) {
    absl::StatusOr<OwnedFd> fd = Connect(job_, deadline);
    status = fd.ok() ? Introduce(fd->get(), deadline) : fd.status();
    if (status.ok()) {
      peers_.push_back(std::move(*fd));
      return status;
    }
    // Rank 0 may not be there yet, or it took us for a stranger because our hello was slow; a refusal by name is final.
    if (!absl::IsUnavailable(status)) return status;
    if (MonotonicNanos() > deadline) break;
    const timespec pause = {0, kDialPause};
    nanosleep(&pause, nullptr);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("rendezvous: rank 0 not met in ", timeout_s_, " s: ", status.message()));
}

absl::Status Rendezvous::Introduce(int fd, int64_t deadline_ns) const {
  Hello hello;
  hello.rank = job_.rank;
  hello.size = job_.size;
  Answer answer = Answer::kWelcome;
  absl::Status status = SendAll(fd, &hello, sizeof(hello), deadline_ns, "rank 0");
  if (status.ok()) status = ReceiveAll(fd, &answer, sizeof(answer), deadline_ns, "rank 0");
  if (!status.ok() || answer == Answer::kWelcome) return status;
  const char* why = answer == Answer::kTakenRank ? "has this rank already" : "has another number of ranks";
  return absl::InvalidArgumentError(absl::StrCat("rendezvous: ", Master(job_), " ", why));
}

absl::Status Rendezvous::Broadcast(void* data, size_t bytes) {
  const int64_t deadline = Deadline(timeout_s_ * kSecond);
  if (job_.rank != 0) return ReceiveAll(peers_[0].get(), data, bytes, deadline, "rank 0");
  for (size_t rank = 1; rank < peers_.size(); ++rank) {
    absl::Status status = SendAll(peers_[rank].get(), data, bytes, deadline, RankName(rank).c_str());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Rendezvous::Sum(std::vector<double>* values) {
  const int64_t deadline = Deadline(timeout_s_ * kSecond);
  const size_t bytes = values->size() * sizeof(double);
  if (job_.rank != 0) {
    absl::Status status = SendAll(peers_[0].get(), values->data(), bytes, deadline, "rank 0");
    return status.ok() ? Broadcast(values->data(), bytes) : status;
  }
  std::vector<double> theirs(values->size());
  for (size_t rank = 1; rank < peers_.size(); ++rank) {
    absl::Status status = ReceiveAll(peers_[rank].get(), theirs.data(), bytes, deadline, RankName(rank).c_str());
    if (!status.ok()) return status;
    for (size_t i = 0; i < theirs.size(); ++i) (*values)[i] += theirs[i];
  }
  return Broadcast(values->data(), bytes);
}

absl::Status Rendezvous::Barrier() {
  std::vector<double> nothing(1);
  return Sum(&nothing);
}

}  // namespace nccl_bench
}  // namespace tcpx
