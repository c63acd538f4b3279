#include "tests/support/visitor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "absl/time/time.h"
#include "common/address.h"
#include "tests/support/processes.h"

namespace tcpx {

Visitor::Visitor(const char* handle, const char* source) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (source != nullptr) {
    const int one = 1;
    setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    const auto local = SocketAddress::Parse(source);
    TCPX_REQUIRE(bind(fd_, local->sockaddr(), local->length()) == 0, source, " errno ", errno);
  }
  Connect(handle);
}

Visitor::Visitor(const char* handle, int fd) : fd_(fd) { Connect(handle); }

void Visitor::Connect(const char* bytes) {
  TCPX_REQUIRE(fd_ >= 0, "errno ", errno);
  Handle handle;
  TCPX_REQUIRE(DecodeHandle(bytes, &handle) == nullptr);
  const timeval patience{absl::ToInt64Seconds(kHungAfter) / 2, 0};
  const int one = 1;
  TCPX_REQUIRE(setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
  TCPX_REQUIRE(setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
  TCPX_REQUIRE(connect(fd_, handle.address.sockaddr(), handle.address.length()) == 0, "errno ", errno);
}

Visitor::Visitor(Visitor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Visitor::~Visitor() { Leave(); }

void Visitor::Leave() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool Visitor::Say(const std::string& bytes) {
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0) TCPX_REQUIRE(errno == EPIPE || errno == ECONNRESET, "errno ", errno);
  return sent == static_cast<ssize_t>(bytes.size());
}

std::string Visitor::Hear(size_t bytes) {
  std::string heard(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t got = recv(fd_, &heard[have], bytes - have, 0);
    if (got < 0) TCPX_REQUIRE(errno == ECONNRESET, "errno ", errno);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  heard.resize(have);
  return heard;
}

std::string Visitor::HearToTheEnd() {
  std::string all;
  std::string more;
  do {
    more = Hear(1);
    all += more;
  } while (!more.empty());
  return all;
}

bool Visitor::Ended() {
  pollfd end{fd_, POLLRDHUP, 0};
  return poll(&end, 1, 0) > 0;
}

std::string HelloFor(const char* handle_bytes, Hello hello) {
  Handle handle;
  TCPX_REQUIRE(DecodeHandle(handle_bytes, &handle) == nullptr);
  hello.ticket = handle.ticket;
  std::string bytes(kHelloBytes, '\0');
  EncodeHello(hello, &bytes[0]);
  return bytes;
}

Answer AnswerFor(Visitor* visitor, const std::string& hello) {
  TCPX_REQUIRE(visitor->Say(hello));
  const std::string bytes = visitor->Hear(kAnswerFixedBytes);
  TCPX_REQUIRE(bytes.size() == kAnswerFixedBytes, bytes.size(), " bytes of an answer");
  Answer answer;
  int nics = 0;
  TCPX_REQUIRE(DecodeAnswer(bytes.data(), &answer, &nics) == nullptr);
  visitor->Hear(static_cast<size_t>(nics) * kPeerNicBytes);
  return answer;
}

}  // namespace tcpx
