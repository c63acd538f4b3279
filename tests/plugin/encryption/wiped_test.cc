// Once a connection is closed, and the process lives on, nothing in its memory helps somebody who has recorded what
// passed: a private key, a shared or a traffic secret, a key. Another process looks, as in a core dump.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "net_socket/message/wire.h"
#include "tests/plugin/encryption/encryption_fixture.h"
#include "tests/plugin/encryption/key_search.h"
#include "tests/plugin/encryption/middle.h"
#include "tests/support/processes.h"

namespace tcpx {
namespace {

// Connects to itself through somebody who hears all, says what was heard and drawn, and closes.
void Talk(const std::string& cipher, Control* peer) {
  (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  Mode settings = Encrypted(Mode());
  settings.threads = 2;
  settings.environment["TCPX_ENCRYPT_CIPHER"] = cipher;
  auto plugin = TestPlugin::Open(settings);
  TCPX_REQUIRE(plugin.ok(), plugin.status().ToString());
  char at[NCCL_NET_HANDLE_MAXSIZE] = {};
  auto listen = (*plugin)->Listen(at);
  Handle handle;
  TCPX_REQUIRE(listen.ok() && DecodeHandle(at, &handle) == nullptr);
  Middle middle(handle.address, Attack());
  handle.address = middle.address();
  handle.other_address = SocketAddress();
  handle.other_nics = 0;
  EncodeHandle(handle, at);
  auto pair = (*plugin)->ConnectTo(*listen, at);
  TCPX_REQUIRE(pair.ok(), pair.status().ToString());
  const std::string wrong = Exchange(&(*plugin)->net(), *pair, {std::string(3000, 'a'), std::string(100000, 'b')});
  TCPX_REQUIRE(wrong.empty(), wrong);
  const int pid = getpid();
  peer->Send(&pid, sizeof(pid));
  SendText(peer, MaskedDraws());
  const auto said = middle.Said();
  const size_t sockets = said.size();
  peer->Send(&sockets, sizeof(sockets));
  for (const auto& [dialler, acceptor] : said) {
    SendText(peer, dialler.substr(0, 1000));
    SendText(peer, acceptor.substr(0, 1000));
  }
  peer->Await('c');
  TCPX_REQUIRE((*plugin)->Close(*pair).ok() && (*plugin)->CloseListen(*listen).ok());
  peer->Tell('c');
  peer->Await('d');
}

void Look(Control* peer) {
  int pid = 0;
  peer->Receive(&pid, sizeof(pid));
  const std::vector<std::string> all = Unmask(ReceiveText(peer));
  const Key32 early = Extract(Key32().view(), "correct horse battery staple");
  size_t sockets = 0;
  peer->Receive(&sockets, sizeof(sockets));
  std::vector<Needle> needles = {{"the early secret", std::string(early.view())}};
  for (size_t i = 0; i < sockets; ++i) {
    const std::string dialler = ReceiveText(peer);
    const std::string acceptor = ReceiveText(peer);
    AddSocket(early, all, dialler, acceptor, &needles);
  }
  // Lane 0 and the health socket are open: else what is found later would prove nothing.
  TCPX_REQUIRE(sockets == 2, sockets);
  size_t traffic = 0;
  const std::vector<std::string> standing = FindInMemory(pid, needles);
  for (const std::string& name : standing) traffic += name.find("traffic secret at") != std::string::npos ? 1 : 0;
  TCPX_REQUIRE(traffic >= 4, absl::StrJoin(standing, "\n"));
  peer->Tell('c');
  peer->Await('c');
  // What housekeeping has yet to destroy goes soon.
  std::vector<std::string> left = FindInMemory(pid, needles);
  for (const Deadline deadline(40); !left.empty() && deadline.Yield(); left = FindInMemory(pid, needles)) {
  }
  TCPX_REQUIRE(left.empty(), absl::StrJoin(left, "\n"));
  peer->Tell('d');
}

class WipedTest : public ::testing::TestWithParam<const char*> {};

TEST_P(WipedTest, NoKeyIsLeftAfterAConnectionWasClosed) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own memory takes long to search, and keeps what was freed";
#endif
  const std::string cipher = GetParam();
  EXPECT_EQ("", RunTogether([&cipher](Control& peer) { Talk(cipher, &peer); }, [](Control& peer) { Look(&peer); }));
}

INSTANTIATE_TEST_SUITE_P(Ciphers, WipedTest, ::testing::Values("", "chacha20-poly1305"),
                         [](const auto& one) { return std::string(one.param[0] == '\0' ? "TheBest" : "ChaCha"); });

}  // namespace
}  // namespace tcpx
