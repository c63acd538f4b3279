// A receiver that says it groups receives and then sends anything: isend must end with an error, never crash, write or
// send what was not asked for. The receiver is a bare socket.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/fd.h"
#include "net_socket/message/wire.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/plugin_log.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

std::string CreditRecord(uint64_t sequence, const std::vector<int32_t>& tags, size_t bytes_off = 0) {
  FrameHeader header;
  header.kind = FrameKind::kCredit;
  header.sequence = sequence;
  header.length = static_cast<uint32_t>(tags.size() * sizeof(int32_t) - bytes_off);
  std::string frame(kHeaderBytes, ' ');
  EncodeHeader(header, &frame[0]);
  return frame + std::string(reinterpret_cast<const char*>(tags.data()), header.length);
}

std::string Flood() {
  std::string flood;
  for (uint64_t i = 0; i < 100; ++i) flood += CreditRecord(i, {5});
  return flood;
}

class HostileCreditsTest : public RulesTest {
 protected:
  // Each case fails a connection of one communicator.
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment["TCPX_SPREAD_ERRORS"] = "0";
    return settings;
  }

  void TearDown() override {
    if (send_ != nullptr) {
      EXPECT_EQ(ncclSuccess, net().CloseSend(send_));
    }
    peer_.reset();  // Nobody has to linger for it.
    RulesTest::TearDown();
  }

  // Answers one lane's hello.
  void AnswerHello(uint32_t max_receives) {
    peer_.reset(listener_.Accept());
    HearHello(peer_.get());
    Answer answer;
    answer.max_receives = max_receives;
    SayByHand(peer_.get(), Encoded(answer));
  }

  // What connect says in the end; the comm is in send_.
  ncclResult_t Connect(uint32_t max_receives) {
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    listener_.WriteHandle(handle);
    EXPECT_EQ(ncclSuccess, net().Connect(plugin_->context(), 0, handle, &send_));
    AnswerHello(max_receives);
    Deadline deadline;
    ncclResult_t result = ncclSuccess;
    while (send_ == nullptr && result == ncclSuccess && deadline.Yield()) {
      result = net().Connect(plugin_->context(), 0, handle, &send_);
    }
    return result;
  }

  // Until isend says something other than "not now".
  ncclResult_t SendUntilAnswered(int tag, void** request) {
    static char byte = 'x';
    Deadline deadline;
    ncclResult_t result = ncclSuccess;
    *request = nullptr;
    while (result == ncclSuccess && *request == nullptr && deadline.Yield()) {
      result = net().Isend(send_, &byte, 1, tag, nullptr, nullptr, request);
    }
    return result;
  }

  const FakeAcceptor listener_;
  OwnedFd peer_;
  void* send_ = nullptr;
};

TEST_P(HostileCreditsTest, AGoodCreditLetsOneMessageGo) {
  ASSERT_EQ(ncclSuccess, Connect(8)) << LogText();
  ASSERT_TRUE(WriteAll(peer_.get(), CreditRecord(0, {4, 5})));
  void* request = nullptr;
  ASSERT_EQ(ncclSuccess, SendUntilAnswered(5, &request)) << LogText();
  char frame[kHeaderBytes];
  ASSERT_EQ(static_cast<ssize_t>(kHeaderBytes), recv(peer_.get(), frame, kHeaderBytes, MSG_WAITALL));
  FrameHeader header;
  ASSERT_EQ(nullptr, DecodeHeader(frame, &header));
  EXPECT_EQ(1u, header.sequence) << "the second member has this tag";
  EXPECT_EQ(5, header.tag);
}

TEST_P(HostileCreditsTest, WrongCreditsEndTheConnection) {
  struct Row {
    const char* name;
    std::string bytes;
  };
  const Row rows[] = {
      {"more members than announced", CreditRecord(0, std::vector<int32_t>(9, 5))},
      {"no member", CreditRecord(0, {})},
      {"half a tag", CreditRecord(0, {5, 5}, 2)},
      {"out of order", CreditRecord(1, {5})},
      {"repeated", CreditRecord(0, {4}) + CreditRecord(0, {5})},
      {"a flood", Flood()},
      {"a message", std::string("\x01", 1) + std::string(kHeaderBytes - 1, '\0')},
      {"garbage", std::string(5000, '\x07')},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    ASSERT_EQ(ncclSuccess, Connect(8)) << LogText();
    ASSERT_TRUE(WriteAll(peer_.get(), row.bytes));
    void* request = nullptr;
    EXPECT_EQ(ncclRemoteError, SendUntilAnswered(6, &request)) << LogText();
    EXPECT_EQ(nullptr, request);
    EXPECT_EQ(ncclSuccess, net().CloseSend(send_));
    send_ = nullptr;
  }
}

TEST_P(HostileCreditsTest, AnAbsurdNumberOfMembersIsRefused) {
  for (uint32_t members : {0u, 9u, 0xffffffffu}) {
    EXPECT_EQ(ncclRemoteError, Connect(members)) << members;
    EXPECT_EQ(nullptr, send_);
  }
}

std::vector<Mode> CallerAndPool() {
  std::vector<Mode> all(2);
  all[1].threads = 2;
  return all;
}

INSTANTIATE_TEST_SUITE_P(OneLane, HostileCreditsTest, ::testing::ValuesIn(CallerAndPool()), ModeName);

}  // namespace
}  // namespace tcpx
