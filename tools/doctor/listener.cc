#include "tools/doctor/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/limits.h"
#include "common/socket.h"
#include "common/status.h"
#include "tools/doctor/channel.h"
#include "tools/doctor/greeting.h"
#include "tools/doctor/kept_lines.h"
#include "tools/doctor/local_checks.h"
#include "tools/doctor/packets.h"
#include "tools/doctor/stream.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int kBacklog = 64;
constexpr unsigned kChildSeconds = 120;
constexpr int kChildrenMax = 64;

absl::StatusOr<OwnedFd> ListenOn(int family, int port) {
  absl::StatusOr<OwnedFd> fd = StreamSocket(family);
  if (!fd.ok()) return fd.status();
  const SocketAddress any = SocketAddress::Any(family, static_cast<uint16_t>(port));
  const int on = 1;
  if (family == AF_INET6) setsockopt(fd->get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  (void)SetReuseAddress(fd->get());
  if (bind(fd->get(), any.sockaddr(), any.length()) != 0 || listen(fd->get(), kBacklog) != 0) {
    return ErrnoStatus(errno, absl::StrCat("listen on port ", port));
  }
  return fd;
}

// IPv4, and the same port of IPv6 where there is that.
absl::StatusOr<std::vector<OwnedFd>> ListenOnBoth(int port, int* chosen) {
  std::vector<OwnedFd> fds;
  auto four = ListenOn(AF_INET, port);
  if (!four.ok()) return four.status();
  const auto address = LocalAddress(four->get());
  if (!address.ok()) return address.status();
  *chosen = address->port();
  fds.push_back(*std::move(four));
  auto six = ListenOn(AF_INET6, *chosen);
  if (six.ok()) fds.push_back(*std::move(six));
  return fds;
}

StreamOrder OrderFrom(const Patient& patient, const std::string& question) {
  const Fields fields = ParseFields(question);
  Report ignored;
  const FoundLibraries found = CheckLibraries(patient, &ignored);
  StreamOrder order;
  order.plugin = found.plugin;
  order.version = found.version;
  order.lanes = static_cast<int>(std::clamp<int64_t>(NumberOf(fields, "lanes", 0), 0, kLanesMax));
  order.device = static_cast<int>(std::clamp<int64_t>(NumberOf(fields, "device", 0), 0, 1024));
  order.milliseconds = static_cast<int>(std::clamp<int64_t>(NumberOf(fields, "ms", 1000), 1, 60000));
  order.sends = TextOf(fields, "role") == "sends";
  return order;
}

void AnswerStream(const Patient& patient, const std::string& question, Channel* channel) {
  const StreamOrder order = OrderFrom(patient, question);
  if (order.plugin.empty()) {
    (void)channel->Send("error the plugin is not found on the other host: run tcpx_doctor there");
  } else {
    (void)RunStream(order, channel);
  }
}

// In a child.
void Answer(const Command& command, OwnedFd fd) {
  Channel channel(std::move(fd));
  const auto question = channel.Receive();
  if (!question.ok()) return;
  const std::vector<std::string> words = absl::StrSplit(*question, ' ', absl::SkipEmpty());
  if (words.size() < 3 || words[0] != "tcpx_doctor" || words[1] != "1") {
    (void)channel.Send("error this is tcpx_doctor, version 1 of its questions");
    return;
  }
  const std::string& about = words[2];
  if (about == "times") return (void)AnswerTimes(&channel);
  if (about == "packets") return (void)AnswerPackets(&channel);
  const std::unique_ptr<Patient> patient = Examine(command);
  if (about == "facts") return (void)SendFacts(*patient, &channel);
  if (about == "secret") return (void)ProveSecret(*patient, *question, &channel);
  if (about == "stream") return AnswerStream(*patient, *question, &channel);
  (void)channel.Send("error unknown question");
}

// Accepts what waits, and gives each a process.
void ServeOne(const Command& command, const std::vector<OwnedFd>& listeners, int listener, int* children) {
  OwnedFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid() || *children >= kChildrenMax) return;
  const pid_t child = fork();
  if (child == 0) {
    alarm(kChildSeconds);
    signal(SIGALRM, SIG_DFL);
    for (const OwnedFd& each : listeners) close(each.get());
    close(STDIN_FILENO);
    (void)SetNoDelay(fd.get());
    Answer(command, std::move(fd));
    _exit(0);
  }
  if (child > 0) ++*children;
}

// Whether stdin has ended: the process that started us is gone.
bool InputEnded() {
  char bytes[256];
  const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
  return count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
}

}  // namespace

int Listen(const Command& command) {
  int port = 0;
  const auto listeners = ListenOnBoth(command.port, &port);
  if (!listeners.ok()) {
    fprintf(stderr, "tcpx_doctor: %s\n", std::string(listeners.status().message()).c_str());
    return 1;
  }
  printf("listening on port %d; tcpx_doctor HOST --port %d on another host asks\n", port, port);
  fflush(stdout);
  std::vector<pollfd> fds;
  for (const OwnedFd& listener : *listeners) fds.push_back({listener.get(), POLLIN, 0});
  if (command.until_eof) fds.push_back({STDIN_FILENO, POLLIN, 0});
  for (int children = 0;;) {
    const int ready = poll(fds.data(), fds.size(), 1000);
    while (waitpid(-1, nullptr, WNOHANG) > 0) --children;
    if (ready <= 0) continue;
    if (command.until_eof && fds.back().revents != 0 && InputEnded()) return 0;
    for (size_t i = 0; i < listeners->size(); ++i) {
      if (fds[i].revents != 0) ServeOne(command, *listeners, fds[i].fd, &children);
    }
  }
}

}  // namespace doctor
}  // namespace tcpx
