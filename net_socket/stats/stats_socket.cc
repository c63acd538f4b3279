#include "net_socket/stats/stats_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "common/this_host.h"

namespace tcpx {
namespace {

std::string FullName(const std::string& name) {
  if (name == "auto") return absl::StrCat("@tcpx-", geteuid(), "-", ProcessMark());
  return absl::StrReplaceAll(name, {{"%p", absl::StrCat(getpid())}});
}

absl::StatusOr<socklen_t> Fill(const std::string& name, sockaddr_un* address) {
  address->sun_family = AF_UNIX;
  const bool abstract = name[0] == '@';
  if (name.size() + (abstract ? 0 : 1) > sizeof(address->sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name ", name, " is too long: ", sizeof(address->sun_path) - 1, " bytes at most"));
  }
  std::memcpy(address->sun_path, name.data(), name.size());
  if (abstract) address->sun_path[0] = '\0';
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
}

OwnedFd UnixSocket() { return OwnedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

// Whether the file is a socket on which nobody listens.
bool LeftBehind(const std::string& path) {
  struct stat about {};
  sockaddr_un address{};
  const auto length = Fill(path, &address);
  if (!length.ok() || lstat(path.c_str(), &about) != 0 || !S_ISSOCK(about.st_mode)) return false;
  const OwnedFd probe = UnixSocket();
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), *length) != 0 && errno == ECONNREFUSED;
}

// Closing it gives the lock back. Anybody who may open the folder can hold the lock: nobody waits for ever.
OwnedFd LockFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  OwnedFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; fd.valid() && i < 100; ++i) {
    if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    usleep(10000);
  }
  return fd;
}

// Asks while none but this process removes such files: else what it removes may be another's, put there since. False:
// the name is still taken.
bool RemoveLeftBehind(const std::string& path) {
  const OwnedFd folder = LockFolderOf(path);
  if (LeftBehind(path)) (void)unlink(path.c_str());
  struct stat about {};
  return lstat(path.c_str(), &about) != 0 && errno == ENOENT;
}

absl::Status Taken(const std::string& name) {
  return absl::AlreadyExistsError(absl::StrCat(
      name, " is taken: where several processes have the same environment, put %p into the name, or say auto"));
}

bool MayRead(int fd) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StatsSocket>> StatsSocket::Open(const std::string& name) {
  std::unique_ptr<StatsSocket> made(new StatsSocket(FullName(name)));
  const absl::Status status = made->Bind();
  if (!status.ok()) return status;
  return made;
}

absl::Status StatsSocket::Bind() {
  const bool file = name_[0] != '@';
  // A file is bound by a name that no other process takes: see Publish.
  const std::string bound = file ? absl::StrCat(name_, ".", ProcessMark()) : name_;
  sockaddr_un address{};
  const auto length = Fill(bound, &address);
  if (!length.ok()) return length.status();
  OwnedFd fd = UnixSocket();
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  if (file) {
    (void)unlink(bound.c_str());
    // What bind makes has the socket's own mode: at no time may others connect.
    if (fchmod(fd.get(), 0600) != 0) return ErrnoStatus(errno, "fchmod");
  }
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), *length) != 0) {
    return errno == EADDRINUSE ? Taken(name_) : ErrnoStatus(errno, absl::StrCat("bind to ", name_));
  }
  absl::Status status = absl::OkStatus();
  if (listen(fd.get(), kBacklog) != 0) status = ErrnoStatus(errno, "listen");
  if (file) {
    if (status.ok()) status = Publish(bound);
    (void)unlink(bound.c_str());
  }
  if (status.ok()) listening_ = std::move(fd);
  return status;
}

// The name appears with a socket that answers: if two processes start at once, neither takes the other's for an old
// one.
absl::Status StatsSocket::Publish(const std::string& bound) {
  struct stat about {};
  if (lstat(bound.c_str(), &about) != 0) return ErrnoStatus(errno, absl::StrCat("stat of ", bound));
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (link(bound.c_str(), name_.c_str()) == 0) {
      device_ = about.st_dev;
      inode_ = about.st_ino;
      return absl::OkStatus();
    }
    if (errno != EEXIST) return ErrnoStatus(errno, absl::StrCat("link to ", name_));
    if (!RemoveLeftBehind(name_)) break;
  }
  return Taken(name_);
}

StatsSocket::~StatsSocket() {
  struct stat about {};
  if (inode_ == 0 || lstat(name_.c_str(), &about) != 0) return;
  if (about.st_dev == device_ && about.st_ino == inode_) (void)unlink(name_.c_str());
}

int64_t StatsSocket::AddPolls(int64_t now_ns, std::vector<pollfd>* polls) const {
  int64_t until_ns = now_ns + kSecond;
  const bool pauses = accepts_ >= kAcceptsMax && now_ns < accept_again_ns_;
  if (pauses) until_ns = std::min(until_ns, accept_again_ns_);
  polls->push_back({pauses ? -1 : listening_.get(), POLLIN, 0});
  for (const Client& client : clients_) {
    polls->push_back({client.fd.get(), POLLOUT, 0});
    until_ns = std::min(until_ns, client.until_ns);
  }
  return until_ns;
}

void StatsSocket::Serve(const std::vector<pollfd>& polls, int64_t now_ns, const Document& document) {
  auto ready = [&polls](int fd) {
    return std::any_of(polls.begin(), polls.end(), [fd](const pollfd& p) { return p.fd == fd && p.revents != 0; });
  };
  for (size_t i = clients_.size(); i-- > 0;) {
    Client& client = clients_[i];
    const bool stays = now_ns < client.until_ns && (!ready(client.fd.get()) || Send(&client));
    if (!stays) clients_.erase(clients_.begin() + static_cast<ptrdiff_t>(i));
  }
  if (ready(listening_.get())) Accept(now_ns, document);
}

void StatsSocket::Accept(int64_t now_ns, const Document& document) {
  if (now_ns >= accept_again_ns_) {
    accept_again_ns_ = now_ns + kAcceptNs;
    accepts_ = 0;
  }
  const int64_t until_ns = MonotonicNanos() + kStrangersNs;
  while (accepts_ < kAcceptsMax) {
    Client client;
    client.fd.reset(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.fd.valid() && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    const bool known = client.fd.valid() && MayRead(client.fd.get());
    const bool waits = !client.fd.valid() || (!known && MonotonicNanos() >= until_ns);  // No descriptor, or a crowd.
    accepts_ = waits ? kAcceptsMax : accepts_ + (known ? 1 : 0);
    if (!known || clients_.size() >= kClientsMax) continue;
    client.document = document();
    client.until_ns = now_ns + kClientNs;
    if (Send(&client)) clients_.push_back(std::move(client));
  }
}

bool StatsSocket::Send(Client* client) {
  const std::string& text = *client->document;
  while (client->sent < text.size()) {
    const ssize_t sent =
        send(client->fd.get(), text.data() + client->sent, text.size() - client->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    client->sent += static_cast<size_t>(sent);
  }
  return false;
}

}  // namespace tcpx
