#include "tools/doctor/packets.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/socket.h"
#include "common/status.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int kMtuMax = 65535;
constexpr int kMtuMin = 1200;
constexpr int kTries = 3;
constexpr int kTryMs = 150;

int Overhead(int family) { return family == AF_INET6 ? 40 + 8 : 20 + 8; }

// A packet: what its answer is to be, then padding.
struct Question {
  uint32_t number;
  uint32_t answer_bytes;  // of the whole IP packet
  uint32_t mark;          // of the answer
};
struct Answer {
  uint32_t number;
  uint32_t mark;  // that the question came with
};

absl::StatusOr<OwnedFd> PacketSocket(const SocketAddress& own) {
  OwnedFd fd(socket(own.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "UDP socket");
  const int on = 1;
  const int probe = IP_PMTUDISC_PROBE;
  const int probe6 = IPV6_PMTUDISC_PROBE;
  if (own.family() == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6));
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
  } else {
    setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
    setsockopt(fd.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
  }
  SocketAddress any_port = own;
  any_port.set_port(0);
  if (bind(fd.get(), any_port.sockaddr(), any_port.length()) != 0) return ErrnoStatus(errno, "bind for UDP");
  return fd;
}

// One packet; -1: none now. `mark` gets its octet.
ssize_t Take(int fd, void* data, size_t bytes, sockaddr_storage* from, int* mark) {
  alignas(cmsghdr) std::array<char, 128> control;
  iovec iov = {data, bytes};
  msghdr message = {};
  message.msg_name = from;
  message.msg_namelen = sizeof(*from);
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = recvmsg(fd, &message, MSG_DONTWAIT);
  *mark = 0;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); count >= 0 && at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_TOS) *mark = *CMSG_DATA(at);
    if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_TCLASS) memcpy(mark, CMSG_DATA(at), sizeof(*mark));
  }
  return count;
}

void AnswerOne(int fd, int family) {
  std::vector<char> bytes(kMtuMax);
  sockaddr_storage from = {};
  int mark = 0;
  const ssize_t count = Take(fd, bytes.data(), bytes.size(), &from, &mark);
  if (count < static_cast<ssize_t>(sizeof(Question))) return;
  Question question;
  memcpy(&question, bytes.data(), sizeof(question));
  // Never more than what a path could carry, and only to the host that asked: no amplifier for strangers, who would
  // have to guess the port while a doctor asks.
  const int wanted = std::min<int>(static_cast<int>(question.answer_bytes), kMtuMax) - Overhead(family);
  const Answer answer = {question.number, static_cast<uint32_t>(mark)};
  memcpy(bytes.data(), &answer, sizeof(answer));
  (void)SetTrafficClass(fd, family, static_cast<int>(question.mark & 0xfc));
  const auto size = static_cast<size_t>(std::max<int>(wanted, sizeof(answer)));
  (void)!sendto(fd, bytes.data(), size, 0, reinterpret_cast<sockaddr*>(&from),
                family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
}

class Asker {
 public:
  Asker(OwnedFd fd, int family) : fd_(std::move(fd)), family_(family), bytes_(kMtuMax) {}

  // Whether an answer came, to any of the tries: a busy host is late. `mark` is the octet that the question bears and
  // the answer is to bear.
  bool Ask(int bytes, int answer_bytes, int mark, PacketFacts* facts) {
    const uint32_t first = number_ + 1;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const Question question = {++number_, static_cast<uint32_t>(answer_bytes), static_cast<uint32_t>(mark)};
      memcpy(bytes_.data(), &question, sizeof(question));
      (void)SetTrafficClass(fd_.get(), family_, mark);
      const auto size = static_cast<size_t>(std::max<int>(bytes - Overhead(family_), sizeof(question)));
      if (send(fd_.get(), bytes_.data(), size, 0) < 0 && errno == EMSGSIZE) return false;
      if (Hear(first, facts)) return true;
    }
    return false;
  }

  // The largest size up to `largest` for which `passes`; each lost one costs a moment, so the usual ones come first.
  template <class Passes>
  int Largest(int largest, Passes passes) {
    if (passes(largest)) return largest;
    int low = kMtuMin;
    if (!passes(low)) return 0;
    int high = largest;  // does not pass
    for (int usual : {9000, 8500, 4096, 1500, 1450, 1400}) {
      if (usual >= high || usual <= low) continue;
      (passes(usual) ? low : high) = usual;
    }
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (passes(middle) ? low : high) = middle;
    }
    return low;
  }

  int KernelMtu() const {
    int mtu = 0;
    socklen_t length = sizeof(mtu);
    const bool six = family_ == AF_INET6;
    const int result = getsockopt(fd_.get(), six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_MTU : IP_MTU, &mtu, &length);
    return result == 0 ? mtu : 0;
  }

 private:
  // Whether a question from `first` on is answered.
  bool Hear(uint32_t first, PacketFacts* facts) {
    const int64_t until = MonotonicNanos() + kTryMs * kMillisecond;
    for (int64_t now; (now = MonotonicNanos()) < until;) {
      pollfd poll_fd = {fd_.get(), POLLIN, 0};
      if (poll(&poll_fd, 1, static_cast<int>((until - now) / kMillisecond) + 1) <= 0) continue;
      sockaddr_storage from;
      int mark = 0;
      Answer answer = {};
      const ssize_t count = Take(fd_.get(), bytes_.data(), bytes_.size(), &from, &mark);
      if (count < 0) return false;  // refused: nobody answers there
      if (count < static_cast<ssize_t>(sizeof(answer))) continue;
      memcpy(&answer, bytes_.data(), sizeof(answer));
      if (answer.number < first) continue;
      facts->mark_there = static_cast<int>(answer.mark);
      facts->mark_back = mark;
      return true;
    }
    return false;
  }

  const OwnedFd fd_;
  const int family_;
  uint32_t number_ = 0;
  std::vector<char> bytes_;
};

}  // namespace

absl::Status AnswerPackets(Channel* channel) {
  const auto own = LocalAddress(channel->fd());
  if (!own.ok()) return own.status();
  const auto fd = PacketSocket(*own);
  if (!fd.ok()) return fd.status();
  const auto bound = LocalAddress(fd->get());
  if (!bound.ok()) return bound.status();
  const absl::Status sent = channel->Send(absl::StrCat("packets port=", bound->port()));
  if (!sent.ok()) return sent;
  for (;;) {
    std::array<pollfd, 2> fds = {{{fd->get(), POLLIN, 0}, {channel->fd(), POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
    if (fds[1].revents != 0) return absl::OkStatus();
    if (fds[0].revents != 0) AnswerOne(fd->get(), own->family());
  }
}

absl::StatusOr<PacketFacts> AskPackets(Channel* channel, int largest, int largest_back, int mark) {
  const auto line = channel->Ask("tcpx_doctor 1 packets");
  if (!line.ok()) return line.status();
  const auto own = LocalAddress(channel->fd());
  auto peer = PeerAddress(channel->fd());
  if (!own.ok() || !peer.ok()) return absl::UnavailableError("the connection ended");
  peer->set_port(static_cast<uint16_t>(NumberOf(ParseFields(*line), "port", 0)));
  auto fd = PacketSocket(*own);
  if (!fd.ok()) return fd.status();
  if (connect(fd->get(), peer->sockaddr(), peer->length()) != 0) return ErrnoStatus(errno, "connect for UDP");
  Asker asker(*std::move(fd), own->family());
  PacketFacts facts;
  facts.answered = asker.Ask(0, 0, mark, &facts);
  if (!facts.answered) return facts;
  PacketFacts ignored;
  facts.there = asker.Largest(largest, [&](int bytes) { return asker.Ask(bytes, 0, 0, &ignored); });
  facts.kernel_there = asker.KernelMtu();
  facts.back = asker.Largest(largest_back, [&](int bytes) { return asker.Ask(0, bytes, 0, &ignored); });
  return facts;
}

}  // namespace doctor
}  // namespace tcpx
