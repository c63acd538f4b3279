#include "tools/doctor/channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/socket.h"
#include "common/status.h"

namespace tcpx {
namespace doctor {

absl::Status Channel::Wait(short events, int64_t until) {
  pollfd poll_fd = {fd_.get(), events, 0};
  const int64_t left = std::max<int64_t>(0, until - MonotonicNanos());
  const int ready = poll(&poll_fd, 1, static_cast<int>(left / kMillisecond));
  if (ready > 0 || (ready < 0 && errno == EINTR)) return absl::OkStatus();
  return absl::UnavailableError("no answer in time");
}

absl::StatusOr<Channel> Channel::Dial(const SocketAddress& peer, const SocketAddress& own, int64_t patience_ns) {
  absl::StatusOr<OwnedFd> fd = StreamSocket(peer.family());
  if (!fd.ok()) return fd.status();
  const std::string what = absl::StrCat("connect to ", peer.ToString());
  if (own.valid()) {
    SocketAddress from = own;
    from.set_port(0);
    if (bind(fd->get(), from.sockaddr(), from.length()) != 0) return ErrnoStatus(errno, "bind to " + own.HostString());
  }
  if (connect(fd->get(), peer.sockaddr(), peer.length()) != 0 && errno != EINPROGRESS) return ErrnoStatus(errno, what);
  Channel channel(*std::move(fd));
  const absl::Status ready = channel.Wait(POLLOUT, MonotonicNanos() + patience_ns);
  if (!ready.ok()) return absl::UnavailableError(what + ": no answer in time");
  const int err = TakeSocketError(channel.fd());
  if (err != 0) return ErrnoStatus(err, what);
  (void)SetNoDelay(channel.fd());
  return channel;
}

absl::Status Channel::Send(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  const int64_t until = MonotonicNanos() + kPatienceNs;
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
      continue;
    }
    if (!IsTransientErrno(errno)) return ErrnoStatus(errno, "send to the other doctor");
    const absl::Status ready = Wait(POLLOUT, until);
    if (!ready.ok()) return ready;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Channel::Receive(int64_t patience_ns) {
  const int64_t until = MonotonicNanos() + patience_ns;
  for (;;) {
    const size_t end = received_.find('\n');
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > kLineMax) return absl::UnavailableError("the other side is no doctor: its line is too long");
    char bytes[4096];
    const ssize_t count = recv(fd_.get(), bytes, sizeof(bytes), 0);
    if (count == 0) return absl::UnavailableError("the other doctor hung up");
    if (count > 0) {
      received_.append(bytes, static_cast<size_t>(count));
      continue;
    }
    if (!IsTransientErrno(errno)) return ErrnoStatus(errno, "hear the other doctor");
    const absl::Status ready = Wait(POLLIN, until);
    if (!ready.ok()) return ready;
  }
}

absl::StatusOr<std::string> Channel::Ask(absl::string_view line, int64_t patience_ns) {
  const absl::Status sent = Send(line);
  if (!sent.ok()) return sent;
  return Receive(patience_ns);
}

Fields ParseFields(absl::string_view line) {
  Fields fields;
  for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const size_t equals = word.find('=');
    if (equals != absl::string_view::npos)
      fields[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
  }
  return fields;
}

std::string TextOf(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

int64_t NumberOf(const Fields& fields, const std::string& name, int64_t fallback) {
  int64_t value = 0;
  return absl::SimpleAtoi(TextOf(fields, name), &value) ? value : fallback;
}

}  // namespace doctor
}  // namespace tcpx
