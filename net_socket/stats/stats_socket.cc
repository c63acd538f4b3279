#include "net_socket/stats/stats_socket.h"

#include <errno.h>
#include <stddef.h>
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
#include "net_socket/stats/process_mark.h"

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

// Of a file that is a socket nobody listens at.
bool LeftBehind(const std::string& path, const sockaddr_un& address, socklen_t length) {
  struct stat about {};
  if (lstat(path.c_str(), &about) != 0 || !S_ISSOCK(about.st_mode)) return false;
  const OwnedFd probe = UnixSocket();
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 && errno == ECONNREFUSED;
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
  sockaddr_un address{};
  const auto length = Fill(name_, &address);
  if (!length.ok()) return length.status();
  OwnedFd fd = UnixSocket();
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  int result = bind(fd.get(), generic, *length);
  const bool file = name_[0] != '@';
  if (result != 0 && errno == EADDRINUSE && file && LeftBehind(name_, address, *length)) {
    (void)unlink(name_.c_str());
    result = bind(fd.get(), generic, *length);
  }
  if (result != 0 && errno == EADDRINUSE) {
    return absl::AlreadyExistsError(
        absl::StrCat(name_,
                     " is taken: where several processes have the same environment, put %p into the name, or "
                     "say auto"));
  }
  if (result != 0) return ErrnoStatus(errno, absl::StrCat("bind to ", name_));
  if (file) {
    struct stat about {};
    if (chmod(name_.c_str(), 0600) == 0 && lstat(name_.c_str(), &about) == 0) {
      device_ = about.st_dev;
      inode_ = about.st_ino;
    }
  }
  if (listen(fd.get(), static_cast<int>(kClientsMax)) != 0) return ErrnoStatus(errno, "listen");
  listening_ = std::move(fd);
  return absl::OkStatus();
}

StatsSocket::~StatsSocket() {
  struct stat about {};
  if (inode_ == 0 || lstat(name_.c_str(), &about) != 0) return;
  if (about.st_dev == device_ && about.st_ino == inode_) (void)unlink(name_.c_str());
}

int64_t StatsSocket::AddPolls(int64_t now_ns, std::vector<pollfd>* polls) const {
  int64_t until_ns = now_ns + kSecond;
  const bool rests = accepts_ >= kAcceptsMax && now_ns < accept_again_ns_;
  if (rests) until_ns = std::min(until_ns, accept_again_ns_);
  polls->push_back({rests ? -1 : listening_.get(), POLLIN, 0});
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
  for (; accepts_ < kAcceptsMax; ++accepts_) {
    Client client;
    client.fd.reset(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.fd.valid() && errno != EAGAIN && errno != EWOULDBLOCK) accepts_ = kAcceptsMax - 1;  // No descriptor.
    if (!client.fd.valid() && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (!client.fd.valid() || clients_.size() >= kClientsMax || !MayRead(client.fd.get())) continue;
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
