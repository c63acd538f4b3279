// Somebody between two ranks, who relays lane 0 and the health socket: what passes has nothing of the plaintext, and
// whatever he does to it, no wrong byte is ever received; the ranks hear of it at once.
#include "tests/plugin/encryption/middle.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "net_socket/message/wire.h"
#include "tests/plugin/encryption/encryption_fixture.h"
#include "tests/support/pattern.h"

namespace tcpx {
namespace {

constexpr int kMessages = 20;
constexpr size_t kBytes = 3000;
// After the hello, the proof and the word that all lanes are up, within the first message.
constexpr size_t kWithin = kHelloBytes + kProofBytes + 600;

class MiddleTest : public ::testing::Test {
 protected:
  void Open(Mode settings, const Attack& attack, bool heals = false) {
    ClearLog();
    settings.lanes = 1;
    settings.environment["TCPX_LINGER"] = "1";
    settings.environment["TCPX_HEAL"] = heals ? "1" : "0";  // What he only resets would be healed.
    if (!heals) settings.environment["NCCL_SOCKET_RETRY_CNT"] = "0";
    auto opened = TestPlugin::Open(settings);
    ASSERT_TRUE(opened.ok()) << opened.status();
    plugin_ = *std::move(opened);
    auto listen = plugin_->Listen(handle_);
    ASSERT_TRUE(listen.ok()) << listen.status();
    listen_ = *listen;
    Handle handle;
    ASSERT_EQ(DecodeHandle(handle_, &handle), nullptr);
    middle_ = std::make_unique<Middle>(handle.address, attack);
    handle.address = middle_->address();
    handle.other_address = SocketAddress();
    handle.other_nics = 0;
    EncodeHandle(handle, handle_);
  }

  // Until the first error.
  std::string Talk() {
    auto pair = plugin_->ConnectTo(listen_, handle_);
    if (!pair.ok()) return std::string(pair.status().message());
    std::string fault;
    // Some at once: where bytes are left out, only what comes after them can show it.
    for (int i = 0; i < kMessages && fault.empty(); i += 4) {
      std::vector<std::string> texts;
      for (int j = i; j < i + 4; ++j) texts.emplace_back(pattern_.Bytes(static_cast<uint64_t>(j)), kBytes);
      fault = Exchange(&plugin_->net(), *pair, texts);
    }
    (void)plugin_->Close(*pair);
    return fault;
  }

  // How often 16 bytes of the messages' text have passed.
  size_t PassedInTheClear() {
    std::unordered_set<std::string> windows;
    for (int i = 0; i < kMessages; ++i) {
      const std::string text(pattern_.Bytes(static_cast<uint64_t>(i)), kBytes);
      for (size_t at = 0; at + 16 <= kBytes; ++at) windows.insert(text.substr(at, 16));
    }
    const std::string passed = middle_->Passed();
    size_t found = 0;
    for (size_t at = 0; at + 16 <= passed.size(); ++at) found += windows.count(passed.substr(at, 16));
    return found;
  }

  const Pattern pattern_{7, kBytes};
  std::unique_ptr<Middle> middle_;
  std::unique_ptr<TestPlugin> plugin_;
  char handle_[NCCL_NET_HANDLE_MAXSIZE] = {};
  void* listen_ = nullptr;
};

TEST_F(MiddleTest, HearsNothing) {
  ASSERT_NO_FATAL_FAILURE(Open(Encrypted(Mode()), Attack()));
  EXPECT_EQ(Talk(), "") << LogText();
  EXPECT_GT(middle_->Passed().size(), kMessages * kBytes);
  EXPECT_EQ(PassedInTheClear(), 0u);
}

// Else the test above would prove nothing.
TEST_F(MiddleTest, HearsAllWithoutEncryption) {
  ASSERT_NO_FATAL_FAILURE(Open(Mode(), Attack()));
  EXPECT_EQ(Talk(), "") << LogText();
  EXPECT_GT(PassedInTheClear(), kMessages * kBytes / 2);
}

// What a GPU may read while it arrives: where a tag is wrong, nothing of its record is there.
class ReadAlongTest : public MiddleTest {
 protected:
  // So many receives in one request, of messages of so many bytes; one message is changed.
  void ExpectThatNothingWrongIsSeen(Mode settings, int count, size_t bytes) {
    Attack attack;
    attack.kind = Attack::Kind::kFlip;
    attack.at = kWithin + bytes / 2;
    ASSERT_NO_FATAL_FAILURE(Open(settings, attack));
    auto pair = plugin_->ConnectTo(listen_, handle_);
    ASSERT_TRUE(pair.ok()) << pair.status();
    std::vector<std::string> places(static_cast<size_t>(count), std::string(bytes, '?'));
    std::string sent;
    while (sent.size() < bytes) sent += std::string(pattern_.Bytes(0), kBytes);
    EXPECT_NE(ReceiveUntilTheError(*pair, &places, sent), ncclSuccess);
    EXPECT_TRUE(middle_->attacked());
    for (const std::string& place : places) {
      for (size_t i = 0; i < bytes; ++i) ASSERT_TRUE(place[i] == '?' || place[i] == sent[i]) << i;
    }
    (void)plugin_->Close(*pair);
  }

 private:
  ncclResult_t ReceiveUntilTheError(const Ends& pair, std::vector<std::string>* places, const std::string& sent) {
    NetClient* const net = &plugin_->net();
    const int count = static_cast<int>(places->size());
    void* data[2] = {};
    size_t sizes[2] = {};
    for (int i = 0; i < count; ++i) {
      data[i] = &(*places)[static_cast<size_t>(i)][0];
      sizes[i] = (*places)[static_cast<size_t>(i)].size();
    }
    int tags[2] = {0, 1};
    void* handles[2] = {};
    void* request = nullptr;
    ncclResult_t result = ncclSuccess;
    const Deadline deadline(60);
    while (request == nullptr && result == ncclSuccess && deadline.Yield()) {
      result = net->Irecv(pair.receive, count, data, sizes, tags, handles, nullptr, &request);
    }
    auto send = PostSend(net, pair.send, sent.data(), sizes[0], 0);
    if (!send.ok()) return ncclSuccess;
    for (int done = 0; result == ncclSuccess && done == 0 && deadline.Yield();) {
      result = net->Test(request, &done, nullptr);
      int send_done = 0;
      if (*send != nullptr && net->Test(*send, &send_done, nullptr) == ncclSuccess && send_done != 0) *send = nullptr;
    }
    return result;
  }
};

TEST_F(ReadAlongTest, NothingIsSeenInAGroup) {
  Mode settings = Encrypted(Mode());
  settings.environment["TCPX_MAX_RECVS"] = "2";
  ExpectThatNothingWrongIsSeen(settings, 2, 64 << 10);
}

// Where NCCL has longer steps of LL than by default, as they are set.
TEST_F(ReadAlongTest, NothingIsSeenInAGroupOfLongerSteps) {
  Mode settings = Encrypted(Mode());
  settings.environment["TCPX_MAX_RECVS"] = "2";
  settings.environment["NCCL_LL_BUFFSIZE"] = "1048576";
  ExpectThatNothingWrongIsSeen(settings, 2, 128 << 10);
}

// It does not say which receives are such.
TEST_F(ReadAlongTest, NothingIsSeenByAnOlderInterface) {
  Mode settings = Encrypted(Mode());
  settings.version = 8;
  ExpectThatNothingWrongIsSeen(settings, 1, 128 << 10);
}

// The acceptor can't know whose it was, and waits on; but its log does not take the peer for somebody who speaks HTTP.
TEST_F(MiddleTest, AChangeOfTheWordThatAllAreUpIsReportedAsSuch) {
  Attack attack;
  attack.kind = Attack::Kind::kFlip;
  attack.at = kHelloBytes + kProofBytes + 30;
  ASSERT_NO_FATAL_FAILURE(Open(Encrypted(Mode()), attack));
  NetClient* const net = &plugin_->net();
  void* send = nullptr;
  void* receive = nullptr;
  const Deadline deadline(60);
  const auto told = [] { return LogHas("was changed on the path (TCPX_ENCRYPT)"); };
  while (!told()) {
    if (send == nullptr) {
      ASSERT_EQ(net->Connect(plugin_->context(), 0, handle_, &send), ncclSuccess) << LogText();
    }
    ASSERT_EQ(net->Accept(listen_, &receive), ncclSuccess);
    ASSERT_EQ(receive, nullptr);
    ASSERT_TRUE(deadline.Yield()) << LogText();
  }
  EXPECT_TRUE(LogHas("peer, or stranger, 127.0.0.1")) << LogText();
  if (send != nullptr) (void)net->CloseSend(send);
}

struct Case {
  const char* name;
  Attack attack;
  const char* told;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class AttackTest : public MiddleTest, public ::testing::WithParamInterface<Case> {};

TEST_P(AttackTest, BringsNoWrongByteAndIsReported) {
  ASSERT_NO_FATAL_FAILURE(Open(Encrypted(Mode()), GetParam().attack));
  const std::string fault = Talk();
  EXPECT_TRUE(middle_->attacked());
  EXPECT_NE(fault, "") << LogText();
  EXPECT_NE(fault, "WRONG BYTES");
  EXPECT_NE(fault, "HANGS") << LogText();
  EXPECT_TRUE(LogHas(GetParam().told)) << LogText();
}

Attack Make(Attack::Kind kind, size_t at, size_t bytes = 1, int socket = 0, bool forward = true) {
  Attack attack;
  attack.kind = kind;
  attack.socket = socket;
  attack.forward = forward;
  attack.at = at;
  attack.bytes = bytes;
  return attack;
}

using Kind = Attack::Kind;

INSTANTIATE_TEST_SUITE_P(
    Attacks, AttackTest,
    ::testing::Values(Case{"Flip", Make(Kind::kFlip, kWithin), "bytes came that are not the peer's"},
                      Case{"FlipLater", Make(Kind::kFlip, kWithin + 9 * kBytes), "bytes came that are not the peer's"},
                      Case{"Drop", Make(Kind::kDrop, kWithin, 7), "bytes came that are not the peer's"},
                      Case{"Repeat", Make(Kind::kRepeat, kWithin, 200), "bytes came that are not the peer's"},
                      Case{"Foreign", Make(Kind::kForeign, kWithin, 100), "bytes came that are not the peer's"},
                      Case{"End", Make(Kind::kEnd, kWithin), "comm"},
                      Case{"Reset", Make(Kind::kReset, kWithin), "comm"},
                      Case{"FlipInTheHello", Make(Kind::kFlip, 30), "peer"},
                      Case{"FlipInTheKey", Make(Kind::kFlip, kHelloBytes + 5), "secret"},
                      Case{"FlipInTheProof", Make(Kind::kFlip, kHelloBytes + kNonceBytes + 5), "secret"},
                      Case{"FlipInTheChallenge", Make(Kind::kFlip, kAnswerFixedBytes + 5, 1, 0, false), "secret"},
                      Case{"FlipInTheAnswer", Make(Kind::kFlip, kAnswerFixedBytes + kNonceBytes + 6, 1, 0, false),
                           "peer"}),
    [](const auto& one) { return one.param.name; });

constexpr char kChanged[] = "bytes came that are not the peer's";

// With lanes that heal he can delay, and no more.
class HealingMiddleTest : public MiddleTest {
 protected:
  std::string TalkUnder(const Attack& attack) {
    Open(Encrypted(Mode()), attack, true);
    if (HasFatalFailure()) return "can't open";
    const std::string fault = Talk();
    EXPECT_TRUE(middle_->attacked());
    EXPECT_NE(fault, "WRONG BYTES");
    EXPECT_NE(fault, "HANGS") << LogText();
    return fault;
  }
};

TEST_F(HealingMiddleTest, AResetIsHealed) {
  ASSERT_EQ(TalkUnder(Make(Kind::kReset, kWithin)), "") << LogText();
  EXPECT_EQ(PassedInTheClear(), 0u);
}

TEST_F(HealingMiddleTest, AChangeIsReportedAlsoWhereAResetFollows) {
  EXPECT_NE(TalkUnder(Make(Kind::kFlipReset, kWithin, 3 * kBytes)), "");
  EXPECT_TRUE(LogHas(kChanged)) << LogText();
}

// What the sender took for delivered may be gone: then it must say so; where it had not looked yet it sends it again.
TEST_F(HealingMiddleTest, WhatIsSwallowedIsSentAgainOrReported) {
  const std::string fault = TalkUnder(Make(Kind::kSwallowReset, kWithin, 3 * kBytes));
  if (fault.empty()) return;
  EXPECT_TRUE(LogHas("the peer does not have what its kernel has acknowledged")) << LogText();
}

TEST_F(HealingMiddleTest, ARecordOfAnEarlierSocketIsNoneOfTheNext) {
  EXPECT_NE(TalkUnder(Make(Kind::kResetReplay, kWithin + 5 * kBytes, kHelloBytes + kProofBytes)), "");
  EXPECT_TRUE(LogHas(kChanged)) << LogText();
}

}  // namespace
}  // namespace tcpx
