#include "net_socket/comm/host_knock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

namespace tcpx {

bool HostKnock::Answers(const SocketAddress& from, const SocketAddress& to) {
  if (answered_) return true;
  if (!fd_.valid() && !Ask(from, to)) return answered_;
  pollfd answer{fd_.get(), POLLOUT, 0};
  if (poll(&answer, 1, 0) <= 0) return false;
  int err = 0;
  socklen_t length = sizeof(err);
  End(getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &err, &length) == 0 ? err : errno);
  return answered_;
}

void HostKnock::Forget() {
  fd_.reset();
  answered_ = false;
}

bool HostKnock::Ask(SocketAddress from, const SocketAddress& to) {
  fd_.reset(socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_.valid()) return false;
  from.set_port(0);
  if (bind(fd_.get(), from.sockaddr(), from.length()) != 0) {
    fd_.reset();
    return false;
  }
  const int err = connect(fd_.get(), to.sockaddr(), to.length()) == 0 ? 0 : errno;
  if (err == EINPROGRESS) return true;
  End(err);
  return false;
}

void HostKnock::End(int err) {
  answered_ = err == 0 || err == ECONNREFUSED;
  fd_.reset();
}

}  // namespace tcpx
