// srtt: what the sender takes for the round trip of a path, compared with a plain socket's, where messages come now and
// then.
//
// usage: srtt FOLDER send|receive BYTES GAP_MS COUNT
//
// Two ranks on hosts of their own. One sends COUNT messages of BYTES, each GAP_MS after the last, through the plugin,
// and then the same over a bare socket; it prints both sockets' smoothed round trips in microseconds:
// "plugin N bare N". The ranks share FOLDER and nothing else.
//
// Threads: one, and the plugin's.
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/socket.h"
#include "net_socket/message/wire.h"
#include "tests/netns/meeting.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

constexpr uint16_t kBarePort = 4711;

struct Plan {
  size_t bytes;
  absl::Duration gap;
  int count;
};

tcp_info Info(int fd) {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  TCPX_REQUIRE(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0);
  return info;
}

// The socket of this process that has sent the most, not counting `other`.
int BusiestSocket(int other) {
  int busiest = -1;
  uint64_t most = 0;
  for (int fd = 0; fd < 256; ++fd) {
    tcp_info info = {};
    socklen_t length = sizeof(info);
    if (fd == other || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
    if (info.tcpi_bytes_acked > most) most = info.tcpi_bytes_acked, busiest = fd;
  }
  TCPX_REQUIRE(busiest >= 0);
  return busiest;
}

// It polls, as NCCL's thread does: on a busy machine one that polls gets a CPU later than one that is woken, and what
// it has not read delays the acknowledgement.
void MoveBare(int fd, bool send, std::vector<char>* data) {
  size_t moved = 0;
  while (moved < data->size()) {
    const ssize_t got = send ? ::send(fd, data->data() + moved, data->size() - moved, MSG_NOSIGNAL)
                             : recv(fd, data->data() + moved, data->size() - moved, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
      sched_yield();
      continue;
    }
    TCPX_REQUIRE(got > 0, errno);
    moved += static_cast<size_t>(got);
  }
}

// The bare socket goes where lane 0 goes.
int BareSocket(const std::string& peer_handle, bool send) {
  const int one = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(kBarePort);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (!send) {
    TCPX_REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 && listen(fd, 1) == 0);
    const int accepted = accept(fd, nullptr, nullptr);
    close(fd);
    return accepted;
  }
  char bytes[kHandleBytesMax] = {};
  FILE* file = fopen(peer_handle.c_str(), "rb");
  TCPX_REQUIRE(file != nullptr && fread(bytes, 1, sizeof(bytes), file) == sizeof(bytes));
  fclose(file);
  Handle handle;
  TCPX_REQUIRE(DecodeHandle(bytes, &handle) == nullptr);
  address.sin_addr = reinterpret_cast<const sockaddr_in*>(handle.address.sockaddr())->sin_addr;
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    TCPX_REQUIRE(absl::Now() < deadline, errno);
    absl::SleepFor(absl::Milliseconds(20));
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return fd;
}

void Run(const Places& places, bool send, const Plan& plan) {
  Rank rank;
  const Ends ends = Connect(&rank, rank.context(), 0, places);
  const int bare = BareSocket(places.peer_handle, send);
  std::vector<char> data(plan.bytes);
  // One after the other: the acknowledgements of the second would wait for those of the first.
  for (int i = 0; i < plan.count; ++i) {
    NetClient* const net = &rank.net();
    Must(WaitFor(net, Must(send ? PostSend(net, ends.send, data.data(), data.size())
                                : PostReceive(net, ends.receive, data.data(), data.size()))));
    if (send) absl::SleepFor(plan.gap);
  }
  const uint32_t plugin_us = send ? Info(BusiestSocket(bare)).tcpi_rtt : 0;
  for (int i = 0; i < plan.count; ++i) {
    MoveBare(bare, send, &data);
    if (send) absl::SleepFor(plan.gap);
  }
  if (send) printf("plugin %u bare %u\n", plugin_us, Info(bare).tcpi_rtt);
  close(bare);
  rank.Close(ends);
  rank.Finalize();
  rank.Unload();
  TCPX_REQUIRE(WarningCount() == 0, LogText());
}

}  // namespace
}  // namespace tcpx

int main(int argc, char** argv) {
  if (argc != 6) {
    fputs("usage: srtt FOLDER send|receive BYTES GAP_MS COUNT\n", stderr);
    return 2;
  }
  const bool send = strcmp(argv[2], "send") == 0;
  const std::string folder = argv[1];
  const tcpx::Places places = {folder + (send ? "/send" : "/receive"), folder + (send ? "/receive" : "/send")};
  tcpx::Run(places, send, {static_cast<size_t>(atol(argv[3])), absl::Milliseconds(atoi(argv[4])), atoi(argv[5])});
  return 0;
}
