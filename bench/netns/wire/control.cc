#include "bench/netns/wire/control.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace tcpx {
namespace wire {
namespace {

constexpr size_t kRequestMax = 4096;
constexpr int kBacklog = 8;

absl::StatusOr<sockaddr_un> NameOf(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof name.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is too long a path for a socket, or empty"));
  }
  path.copy(name.sun_path, path.size());
  return name;
}

const sockaddr* Generic(const sockaddr_un& name) { return reinterpret_cast<const sockaddr*>(&name); }

absl::Status SendAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0) return ErrnoStatus(errno, "send");
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

}  // namespace

ControlServer::~ControlServer() {
  if (listener_) unlink(path_.c_str());
}

absl::Status ControlServer::Listen(const std::string& path) {
  const absl::StatusOr<sockaddr_un> name = NameOf(path);
  if (!name.ok()) return name.status();
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus(errno, "socket");
  unlink(path.c_str());
  if (bind(fd.get(), Generic(*name), sizeof *name) != 0) return ErrnoStatus(errno, absl::StrCat("bind ", path));
  if (listen(fd.get(), kBacklog) != 0) return ErrnoStatus(errno, "listen");
  path_ = path;
  listener_ = std::move(fd);
  return absl::OkStatus();
}

std::vector<int> ControlServer::fds() const {
  std::vector<int> fds;
  if (listener_) fds.push_back(listener_.get());
  for (const Client& client : clients_) fds.push_back(client.fd.get());
  return fds;
}

bool ControlServer::Hear(Client* client, const Handler& handler) {
  char text[512];
  ssize_t got = 0;
  while ((got = recv(client->fd.get(), text, sizeof text, 0)) > 0) {
    client->request.append(text, static_cast<size_t>(got));
    if (client->request.size() > kRequestMax) return false;
  }
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  std::string answer;
  for (absl::string_view line : absl::StrSplit(client->request, '\n', absl::SkipWhitespace())) answer += handler(line);
  // A few hundred bytes: they fit into the socket's buffer.
  if (absl::Status status = SendAll(client->fd.get(), answer); !status.ok()) return false;
  return false;
}

void ControlServer::Serve(const Handler& handler) {
  if (!listener_) return;
  for (;;) {
    OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) break;
    clients_.push_back({std::move(fd), ""});
  }
  const auto done = [&](Client& client) { return !Hear(&client, handler); };
  clients_.erase(std::remove_if(clients_.begin(), clients_.end(), done), clients_.end());
}

absl::StatusOr<std::string> Ask(const std::string& path, absl::string_view request) {
  const absl::StatusOr<sockaddr_un> name = NameOf(path);
  if (!name.ok()) return name.status();
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus(errno, "socket");
  if (connect(fd.get(), Generic(*name), sizeof *name) != 0) return ErrnoStatus(errno, absl::StrCat("connect ", path));
  if (absl::Status status = SendAll(fd.get(), request); !status.ok()) return status;
  if (shutdown(fd.get(), SHUT_WR) != 0) return ErrnoStatus(errno, "shutdown");
  std::string answer;
  char text[4096];
  ssize_t got = 0;
  while ((got = recv(fd.get(), text, sizeof text, 0)) > 0) answer.append(text, static_cast<size_t>(got));
  if (got < 0) return ErrnoStatus(errno, "recv");
  return answer;
}

}  // namespace wire
}  // namespace tcpx
