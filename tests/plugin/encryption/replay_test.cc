// Who has recorded whole sockets, hello and all, says again what one end of them said: to the acceptor, while the
// connection is open and after it, of lanes, of the health socket and of a lane that was resumed; and to the dialler.
// He gets no further than the proof, which is of keys that are new for each socket, and the connection does not notice.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/socket.h"
#include "net_socket/message/wire.h"
#include "tests/plugin/encryption/encryption_fixture.h"
#include "tests/plugin/encryption/middle.h"
#include "tests/support/pattern.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr size_t kBytes = 3000;
constexpr size_t kChallengeBytes = kAnswerFixedBytes + kNonceBytes;

class ReplayTest : public ::testing::Test {
 protected:
  void Open(const Attack& attack, bool heals) {
    ClearLog();
    Mode settings = Encrypted(Mode());
    settings.lanes = 1;
    settings.environment["TCPX_LINGER"] = "1";
    settings.environment["TCPX_HEAL"] = heals ? "1" : "0";
    settings.environment["NCCL_SOCKET_RETRY_CNT"] = heals ? "34" : "0";
    auto opened = TestPlugin::Open(settings);
    ASSERT_TRUE(opened.ok()) << opened.status();
    plugin_ = *std::move(opened);
    auto listen = plugin_->Listen(handle_);
    ASSERT_TRUE(listen.ok()) << listen.status();
    listen_ = *listen;
    Handle handle;
    ASSERT_EQ(DecodeHandle(handle_, &handle), nullptr);
    middle_ = std::make_unique<Middle>(handle.address, attack);
    Redirect(middle_->address(), middle_handle_);
    auto pair = plugin_->ConnectTo(listen_, middle_handle_);
    ASSERT_TRUE(pair.ok()) << pair.status();
    pair_ = *pair;
  }

  // The handle, with another address.
  void Redirect(const SocketAddress& to, char* redirected) {
    Handle handle;
    ASSERT_EQ(DecodeHandle(handle_, &handle), nullptr);
    handle.address = to;
    handle.other_address = SocketAddress();
    handle.other_nics = 0;
    std::fill(redirected, redirected + NCCL_NET_HANDLE_MAXSIZE, '\0');
    EncodeHandle(handle, redirected);
  }

  std::string Talk() {
    std::vector<std::string> texts;
    for (int i = 0; i < 4; ++i) texts.emplace_back(pattern_.Bytes(static_cast<uint64_t>(i)), kBytes);
    return Exchange(&plugin_->net(), pair_, texts);
  }

  // To the acceptor, as a dialler: it asks for a proof, and answers this one, if its reset does not take that
  // along.
  void SayAgain(const std::string& said) {
    Visitor visitor(handle_);
    (void)visitor.Say(said);
    const std::string heard = visitor.HearToTheEnd();
    EXPECT_LE(heard.size(), kChallengeBytes + kAnswerFixedBytes);
    for (const size_t at : {size_t{0}, kChallengeBytes}) {
      Answer answer;
      int nics = 0;
      if (heard.size() < at + kAnswerFixedBytes) continue;
      ASSERT_EQ(DecodeAnswer(heard.data() + at, &answer, &nics), nullptr);
      EXPECT_EQ(answer.status, at == 0 ? HelloStatus::kProve : HelloStatus::kSecretWrong);
    }
  }

  const Pattern pattern_{7, kBytes};
  std::unique_ptr<Middle> middle_;
  std::unique_ptr<TestPlugin> plugin_;
  char handle_[NCCL_NET_HANDLE_MAXSIZE] = {};
  char middle_handle_[NCCL_NET_HANDLE_MAXSIZE] = {};
  void* listen_ = nullptr;
  Ends pair_;
};

constexpr char kNotProven[] = "did not prove the shared secret: give all ranks the same";

TEST_F(ReplayTest, OpensNoOtherSocket) {
  ASSERT_NO_FATAL_FAILURE(Open(Attack(), false));
  ASSERT_EQ(Talk(), "") << LogText();
  const auto sockets = middle_->Said();
  ASSERT_GE(sockets.size(), 2u) << "lane 0 and the health socket";
  for (const auto& [dialler, acceptor] : sockets) {
    ASSERT_GT(dialler.size(), kHelloBytes + kProofBytes);
    ASSERT_NO_FATAL_FAILURE(SayAgain(dialler));
    ASSERT_NO_FATAL_FAILURE(SayAgain(dialler.substr(0, kHelloBytes + kProofBytes)));
    // And what the other side says is no hello at all.
    Visitor reflects(handle_);
    (void)reflects.Say(acceptor);
    EXPECT_EQ(reflects.HearToTheEnd(), "");
  }
  EXPECT_TRUE(LogHas(kNotProven)) << LogText();
  EXPECT_EQ(Talk(), "") << LogText();
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  for (const auto& [dialler, acceptor] : sockets) ASSERT_NO_FATAL_FAILURE(SayAgain(dialler));
}

TEST_F(ReplayTest, ResumesNoLane) {
  Attack reset;
  reset.kind = Attack::Kind::kReset;
  reset.at = kHelloBytes + kProofBytes + kBytes;
  ASSERT_NO_FATAL_FAILURE(Open(reset, true));
  ASSERT_EQ(Talk(), "") << LogText();
  ASSERT_TRUE(middle_->attacked());
  int resumed = 0;
  for (const auto& [dialler, acceptor] : middle_->Said()) {
    Hello hello;
    ASSERT_EQ(DecodeHello(dialler.data(), &hello), nullptr);
    resumed += hello.kind == HelloKind::kResume ? 1 : 0;
    ASSERT_NO_FATAL_FAILURE(SayAgain(dialler));
  }
  EXPECT_EQ(resumed, 1);
  EXPECT_TRUE(LogHas(kNotProven)) << LogText();
  EXPECT_EQ(Talk(), "") << LogText();
  EXPECT_TRUE(plugin_->Close(pair_).ok());
}

TEST_F(ReplayTest, DeceivesNoDialler) {
  ASSERT_NO_FATAL_FAILURE(Open(Attack(), false));
  ASSERT_EQ(Talk(), "") << LogText();
  const std::string acceptor = middle_->Said()[0].second;
  const OwnedFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress local = *SocketAddress::Parse("127.0.0.1");
  ASSERT_EQ(bind(listener.get(), local.sockaddr(), local.length()), 0);
  ASSERT_EQ(listen(listener.get(), 64), 0);
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  ASSERT_NO_FATAL_FAILURE(Redirect(*LocalAddress(listener.get()), handle));
  std::vector<OwnedFd> accepted;
  void* comm = nullptr;
  ncclResult_t result = ncclSuccess;
  const Deadline deadline(60);
  while (comm == nullptr && result == ncclSuccess) {
    result = plugin_->net().Connect(plugin_->context(), 0, handle, &comm);
    OwnedFd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.valid()) {
      ASSERT_EQ(send(fd.get(), acceptor.data(), acceptor.size(), MSG_NOSIGNAL), static_cast<ssize_t>(acceptor.size()));
      accepted.push_back(std::move(fd));
    }
    ASSERT_TRUE(deadline.Yield()) << LogText();
  }
  EXPECT_EQ(comm, nullptr);
  EXPECT_NE(result, ncclSuccess);
  EXPECT_TRUE(LogHas("did not prove the shared secret")) << LogText();
  EXPECT_TRUE(plugin_->Close(pair_).ok());
}

}  // namespace
}  // namespace tcpx
