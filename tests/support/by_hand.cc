#include "tests/support/by_hand.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/visitor.h"

namespace tcpx {

int DialByHand(const char* handle, const Hello& hello, Answer* answer) {
  Visitor visitor(handle);
  *answer = AnswerFor(&visitor, HelloFor(handle, hello));
  return visitor.Release();
}

int DialByHand(const char* handle, const Hello& hello) {
  Answer answer;
  const int fd = DialByHand(handle, hello, &answer);
  TCPX_REQUIRE(answer.status == HelloStatus::kAccepted, HelloStatusText(answer.status));
  return fd;
}

bool EndsByHand(int fd) {
  char byte;
  const ssize_t got = recv(fd, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

// Twice: the plugin may have heard of this hello together with what was there before it.
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

// What the first hello brings is there before it is counted.
ListenByHand::ListenByHand(Rank* one) : rank(one), listen(one->Listen(handle)), descriptors(OpenDescriptors().size()) {}

void* ListenByHand::Accept(int polls) {
  void* comm = nullptr;
  for (int i = 0; i < polls && comm == nullptr; ++i) {
    TCPX_REQUIRE(rank->net().Accept(listen, &comm) == ncclSuccess, LogText());
    absl::SleepFor(absl::Milliseconds(1));
  }
  return comm;
}

void* ListenByHand::AcceptWithin() {
  Ends ends;
  TCPX_REQUIRE(rank->Poll(nullptr, listen, &ends) == ncclSuccess, LogText());
  return ends.receive;
}

bool ListenByHand::Accepts() {
  void* const comm = Accept();
  if (comm != nullptr) rank->CloseReceive(comm);
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
  rank->CloseListen(listen);
  rank->Finalize();
  TCPX_REQUIRE(WarningCount() == 0, LogText());
}

std::string ReceiveText(Rank* rank, void* comm, size_t bytes) {
  std::string text(bytes, '?');
  int size = 0;
  Must(WaitFor(&rank->net(), Must(PostReceive(&rank->net(), comm, &text[0], bytes)), &size));
  return text.substr(0, static_cast<size_t>(size));
}

}  // namespace tcpx
