#include "tests/support/fake_acceptor.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nccl/net_types.h"
#include "tests/support/processes.h"

namespace tcpx {

FakeAcceptor::FakeAcceptor(bool listens, int window_bytes) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (window_bytes != 0) {
    TCPX_REQUIRE(setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &window_bytes, sizeof(window_bytes)) == 0);
  }
  const auto local = SocketAddress::Parse("127.0.0.1");
  TCPX_REQUIRE(bind(fd_, local->sockaddr(), local->length()) == 0, "errno ", errno);
  if (listens) Listen();
}

FakeAcceptor::~FakeAcceptor() { close(fd_); }

SocketAddress FakeAcceptor::address() const {
  auto local = LocalAddress(fd_);
  TCPX_REQUIRE(local.ok(), local.status().ToString());
  return *local;
}

std::string FakeAcceptor::HandleBytes(int nics) const {
  Handle handle;
  handle.address = address();
  handle.nics = static_cast<uint16_t>(nics);
  std::string bytes(NCCL_NET_HANDLE_MAXSIZE, '\0');
  EncodeHandle(handle, &bytes[0]);
  return bytes;
}

void FakeAcceptor::WriteHandle(char* out) const { HandleBytes().copy(out, NCCL_NET_HANDLE_MAXSIZE); }

void FakeAcceptor::Listen() { TCPX_REQUIRE(listen(fd_, 16) == 0, "errno ", errno); }

int FakeAcceptor::Accept() const {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  TCPX_REQUIRE(fd >= 0, "errno ", errno);
  return fd;
}

int FakeAcceptor::TryAccept() const {
  pollfd dialled{fd_, POLLIN, 0};
  return poll(&dialled, 1, 0) == 1 && dialled.revents == POLLIN ? Accept() : -1;
}

void SayByHand(int fd, const std::string& bytes) {
  TCPX_REQUIRE(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()), "errno ",
               errno);
}

std::string HearByHand(int fd, size_t bytes) {
  std::string heard(bytes, '\0');
  const ssize_t got = bytes == 0 ? 0 : recv(fd, &heard[0], bytes, MSG_WAITALL);
  TCPX_REQUIRE(got == static_cast<ssize_t>(bytes), got, " of ", bytes, " bytes, errno ", errno);
  return heard;
}

Hello HearHello(int fd) {
  Hello hello;
  TCPX_REQUIRE(DecodeHello(HearByHand(fd, kHelloBytes).data(), &hello) == nullptr);
  return hello;
}

std::string Encoded(const Answer& answer) {
  std::string bytes(kAnswerBytesMax, '\0');
  bytes.resize(EncodeAnswer(answer, &bytes[0]));
  return bytes;
}

}  // namespace tcpx
