#include "tests/plugin/lifetime/by_hand.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/plugin/lifetime/processes.h"

namespace tcpx {
namespace {

std::string Hear(int fd, size_t bytes) {
  std::string heard(bytes, '\0');
  const ssize_t got = bytes == 0 ? 0 : recv(fd, &heard[0], bytes, MSG_WAITALL);
  TCPX_REQUIRE(got == static_cast<ssize_t>(bytes), got, " bytes of an answer, errno ", errno);
  return heard;
}

}  // namespace

int DialByHand(const char* handle_bytes, Hello hello, Answer* answer) {
  Handle handle;
  TCPX_REQUIRE(DecodeHandle(handle_bytes, &handle) == nullptr);
  hello.ticket = handle.ticket;
  std::string bytes(kHelloBytes, '\0');
  EncodeHello(hello, &bytes[0]);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{absl::ToInt64Seconds(kHungAfter), 0};
  const int one = 1;
  TCPX_REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
  TCPX_REQUIRE(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
  TCPX_REQUIRE(connect(fd, handle.address.sockaddr(), handle.address.length()) == 0, "errno ", errno);
  SayByHand(fd, bytes);
  int nics = 0;
  TCPX_REQUIRE(DecodeAnswer(Hear(fd, kAnswerFixedBytes).data(), answer, &nics) == nullptr);
  Hear(fd, static_cast<size_t>(nics) * kPeerNicBytes);
  return fd;
}

int DialByHand(const char* handle, const Hello& hello) {
  Answer answer;
  const int fd = DialByHand(handle, hello, &answer);
  TCPX_REQUIRE(answer.status == HelloStatus::kAccepted, HelloStatusText(answer.status));
  return fd;
}

void SayByHand(int fd, const std::string& bytes) {
  TCPX_REQUIRE(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

bool EndsByHand(int fd) {
  char byte;
  const ssize_t got = recv(fd, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

// Twice: the plugin may have been told of this hello together with what was there before it.
void GoRound(const char* handle) {
  for (int i = 0; i < 2; ++i) {
    Hello hello;
    hello.kind = static_cast<HelloKind>(77);
    Answer answer;
    close(DialByHand(handle, hello, &answer));
    TCPX_REQUIRE(answer.status == HelloStatus::kUnknownKind);
  }
}

std::string Established() {
  std::string record(kHeaderBytes, '\0');
  EncodeEstablished(&record[0]);
  return record;
}

std::string ExpressMessage(const std::string& text, uint64_t sequence) {
  FrameHeader header;
  header.length = static_cast<uint32_t>(text.size());
  header.message_bytes = text.size();
  header.sequence = sequence;
  std::string frame(kHeaderBytes, '\0');
  EncodeHeader(header, &frame[0]);
  return frame + text;
}

ListenByHand::ListenByHand(Rank* one) : rank(one) {
  TCPX_REQUIRE(rank->net().Listen(rank->context(), 0, handle, &listen) == ncclSuccess, LogText());
  // What the first hello brings is there before it is counted.
  descriptors = OpenDescriptors().size();
}

void* ListenByHand::Accept(int polls) {
  void* comm = nullptr;
  for (int i = 0; i < polls && comm == nullptr; ++i) {
    TCPX_REQUIRE(rank->net().Accept(listen, &comm) == ncclSuccess, LogText());
    absl::SleepFor(absl::Milliseconds(1));
  }
  return comm;
}

void* ListenByHand::AcceptWithin() {
  const absl::Time deadline = absl::Now() + kHungAfter;
  void* comm = nullptr;
  while (comm == nullptr) {
    TCPX_REQUIRE(absl::Now() < deadline, "nothing is accepted; ", LogText());
    comm = Accept(1);
  }
  return comm;
}

bool ListenByHand::Accepts() {
  void* const comm = Accept();
  if (comm != nullptr) TCPX_REQUIRE(rank->net().CloseRecv(comm) == ncclSuccess);
  return comm != nullptr;
}

bool ListenByHand::SettlesAtMore(size_t count) const {
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (OpenDescriptors().size() != descriptors + count) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

void ListenByHand::Close() {
  TCPX_REQUIRE(rank->net().CloseListen(listen) == ncclSuccess);
  rank->Finalize();
  TCPX_REQUIRE(WarningCount() == 0, LogText());
}

std::string ReceiveText(Rank* rank, void* comm, size_t bytes) {
  std::string text(bytes, '?');
  void* memory = nullptr;
  NetClient& net = rank->net();
  TCPX_REQUIRE(net.RegMr(comm, &text[0], bytes, NCCL_PTR_HOST, &memory) == ncclSuccess);
  void* data = &text[0];
  int tag = 0;
  void* request = nullptr;
  TCPX_REQUIRE(net.Irecv(comm, 1, &data, &bytes, &tag, &memory, nullptr, &request) == ncclSuccess, LogText());
  TCPX_REQUIRE(request != nullptr);
  const absl::Time deadline = absl::Now() + kHungAfter;
  int done = 0;
  int size = 0;
  while (done == 0) {
    TCPX_REQUIRE(net.Test(request, &done, &size) == ncclSuccess, LogText());
    TCPX_REQUIRE(absl::Now() < deadline, "no message; ", LogText());
  }
  TCPX_REQUIRE(net.DeregMr(comm, memory) == ncclSuccess);
  return text.substr(0, static_cast<size_t>(size));
}

}  // namespace tcpx
