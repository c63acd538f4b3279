// While a connection is open, and goes on by other lanes, nothing in its process's memory opens what passed on a socket
// that is gone: of a lane that was closed, and of one that has got another socket.
#include <dirent.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/socket.h"
#include "net_socket/message/wire.h"
#include "tests/plugin/encryption/encryption_fixture.h"
#include "tests/plugin/encryption/key_search.h"
#include "tests/support/processes.h"

namespace tcpx {
namespace {

// What both ends of a socket have said until the dialler was proven.
struct Handshake {
  int port = 0;  // the dialler's
  std::string dialler;
  std::string acceptor;
};
std::mutex g_mutex;
std::vector<Handshake> g_handshakes;

// Hello, challenge and proof are of one length.
constexpr size_t kPartBytes = kHelloBytes;
static_assert(kPartBytes == kAnswerFixedBytes + kNonceBytes && kPartBytes == kProofBytes);

void Note(int fd, const std::string& part) {
  const auto local = LocalAddress(fd);
  const auto peer = PeerAddress(fd);
  if (!local.ok() || !peer.ok()) return;
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (absl::StartsWith(part, "TCPX")) return g_handshakes.push_back({local->port(), part, ""});
  const bool challenge = absl::StartsWith(part, "TCPr");
  for (auto one = g_handshakes.rbegin(); one != g_handshakes.rend(); ++one) {
    if (one->port != (challenge ? peer->port() : local->port())) continue;
    std::string* const said = challenge ? &one->acceptor : &one->dialler;
    if (said->size() < (challenge ? 1 : 2) * kPartBytes) *said += part;
    return;
  }
}

}  // namespace
}  // namespace tcpx

// The library's too.
extern "C" __attribute__((visibility("default"))) ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  if (bytes == tcpx::kPartBytes) tcpx::Note(fd, std::string(static_cast<const char*>(data), bytes));
  return syscall(SYS_sendto, fd, data, bytes, flags, nullptr, 0);
}

namespace tcpx {
namespace {

size_t Lines(const std::string& text) {
  const std::vector<std::string> lines = LogLines(NCCL_LOG_INFO);
  return static_cast<size_t>(std::count_if(lines.begin(), lines.end(),
                                           [&](const std::string& line) { return absl::StrContains(line, text); }));
}

// The ports of both ends of all sockets of this process.
std::set<int> PortsInUse() {
  std::set<int> ports;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    for (const auto& address : {LocalAddress(atoi(entry->d_name)), PeerAddress(atoi(entry->d_name))}) {
      if (address.ok()) ports.insert(address->port());
    }
  }
  closedir(folder);
  return ports;
}

// Sends the whole handshakes, of the sockets that are open or of those that are gone.
void SendHandshakes(Control* peer, bool standing) {
  const std::set<int> ports = PortsInUse();
  const std::lock_guard<std::mutex> lock(g_mutex);
  std::vector<Handshake> those;
  for (const Handshake& one : g_handshakes) {
    if (one.dialler.size() == 2 * kPartBytes && (ports.count(one.port) != 0) == standing) those.push_back(one);
  }
  const size_t count = those.size();
  peer->Send(&count, sizeof(count));
  for (const Handshake& one : those) {
    SendText(peer, one.dialler);
    SendText(peer, one.acceptor);
  }
}

// How many sockets; `needles` are their traffic secrets and keys.
size_t ReceiveNeedles(Control* peer, const std::vector<std::string>& all, std::vector<Needle>* needles) {
  const Key32 early = Extract(Key32().view(), "correct horse battery staple");
  size_t count = 0;
  peer->Receive(&count, sizeof(count));
  for (size_t i = 0; i < count; ++i) {
    const std::string dialler = ReceiveText(peer);
    const std::string acceptor = ReceiveText(peer);
    std::vector<Needle> of_it;
    AddSocket(early, all, dialler, acceptor, &of_it);
    for (const Needle& needle : of_it) {
      if (absl::StrContains(needle.name, "'s traffic secret") || absl::StrContains(needle.name, "'s key of 16"))
        needles->push_back(needle);
    }
  }
  return count;
}

// Connects to itself with lanes that come and go at random, until some were closed and some have got another socket.
void Talk(Control* peer) {
  (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  Mode settings = Encrypted(Mode());
  settings.threads = 2;
  settings.lanes = 4;
  settings.environment["TCPX_HEAL"] = "1";
  settings.environment["TCPX_TEST_SHUFFLE_LANES"] = "1";
  settings.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
  auto plugin = TestPlugin::Open(settings);
  TCPX_REQUIRE(plugin.ok(), plugin.status().ToString());
  auto pair = (*plugin)->Connect();
  TCPX_REQUIRE(pair.ok(), pair.status().ToString());
  const std::string text(size_t{1} << 20, 'x');
  const Deadline deadline(60);
  while (Lines(" is closed") < 2 || Lines(" goes on, ") < 2) {
    const std::string wrong = Exchange(&(*plugin)->net(), *pair, {text, text});
    TCPX_REQUIRE(wrong.empty() && deadline.Yield(), wrong, "\n", LogText());
  }
  const int pid = getpid();
  peer->Send(&pid, sizeof(pid));
  for (char word = 'm'; word == 'm'; peer->Receive(&word, 1)) {
    SendText(peer, MaskedDraws());
    SendHandshakes(peer, true);
    SendHandshakes(peer, false);
  }
  TCPX_REQUIRE((*plugin)->Close(*pair).ok());
}

// Asks again for what is closed, or dialled, just now.
void Look(Control* peer) {
  int pid = 0;
  peer->Receive(&pid, sizeof(pid));
  for (const Deadline deadline(40);;) {
    const std::vector<std::string> all = Unmask(ReceiveText(peer));
    std::vector<Needle> standing;
    std::vector<Needle> gone;
    (void)ReceiveNeedles(peer, all, &standing);
    const size_t sockets = ReceiveNeedles(peer, all, &gone);
    const std::vector<std::string> left = FindInMemory(pid, gone);
    // Else nothing would be proven: a key may lie there in another form, its traffic secret does not.
    const size_t found = FindInMemory(pid, standing).size();
    if (left.empty() && sockets >= 3 && 2 * found >= standing.size()) return peer->Tell('d');
    TCPX_REQUIRE(deadline.Yield(), sockets, " sockets are gone, of ", standing.size(), " keys ", found, " are found\n",
                 absl::StrJoin(left, "\n"));
    peer->Tell('m');
  }
}

TEST(LanesWipedTest, NoKeyOutlivesItsSocket) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own memory takes long to search, and keeps what was freed";
#endif
  EXPECT_EQ("", RunTogether([](Control& peer) { Talk(&peer); }, [](Control& peer) { Look(&peer); }, 2 * kHungAfter));
}

}  // namespace
}  // namespace tcpx
