// What waits for a peer that asks and does not read: every queue has a bound.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "common/fd.h"
#include "common/socket.h"
#include "net_socket/health/health_peer.h"
#include "net_socket/health/verdict.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/health/health_pair.h"
#include "tests/unit/net_socket/health/health_records.h"

namespace tcpx {
namespace {

// A peer that asks and never reads: what would answer it waits in a queue with a bound.
class DeafPeerTest : public HealthTest {
 protected:
  void SetUp() override {
    HealthTest::SetUp();
    TcpPair pair = MakeTcpPair(16 << 10);
    own_ = std::move(pair.a);
    reactor_.RunSync([&] { far_hub_.AcceptInLoop(9, std::move(pair.b), {kTimeout}); });
  }
  // So often, and until all of it was heard. What has come back is read only then: the whole of it.
  std::string AnswerTo(const std::string& record, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += record;
    Deadline deadline;
    for (size_t sent = 0; sent < all.size() && deadline.Yield();) {
      const ssize_t now = send(own_.get(), all.data() + sent, all.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      sent += now > 0 ? static_cast<size_t>(now) : 0;
    }
    while (QueuedBytes(own_.get()) > 0 && deadline.Yield()) {
    }
    for (int i = 0; i < 10; ++i) reactor_.RunSync([] {});
    shutdown(own_.get(), SHUT_WR);
    std::string answer;
    for (char bytes[4096]; deadline.Yield();) {
      const ssize_t got = recv(own_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) break;
      answer.append(bytes, got > 0 ? static_cast<size_t>(got) : 0);
    }
    return answer;
  }

  OwnedFd own_;
};

constexpr int kFlood = 20000;

TEST_F(DeafPeerTest, HearsWhoIsHereOnce) {
  WaitNews news;
  news.who = "somebody";
  const std::string introduction = WaitsNotice(ConnectionId{}, EncodeNews(news));
  news.who = ThisProcessName();
  news.process = ThisProcessNumber();
  EXPECT_EQ(WaitsNotice(ConnectionId{}, EncodeNews(news)), AnswerTo(introduction, kFlood));
}

TEST_F(DeafPeerTest, GetsNoMoreAnswersThanFitTheQueue) {
  WaitNews question;
  question.asks = true;
  const std::string record = WaitsNotice(Id(1), EncodeNews(question));
  EXPECT_GT(kFlood * record.size(), size_t{1} << 20);
  EXPECT_LT(AnswerTo(record, kFlood).size(), size_t{512} << 10);
}

TEST_F(DeafPeerTest, LearnsTheTimeNoMoreOftenThanFitsTheQueue) {
  ClockRecord question;
  question.asked_ns = 1;
  const std::string record = ClockNotice(EncodeClock(question));
  EXPECT_GT(kFlood * record.size(), size_t{1} << 20);
  EXPECT_LT(AnswerTo(record, kFlood).size(), size_t{512} << 10);
}

// 1 MiB waits for its kernel, and 16,384 records to be said again.
TEST_F(DeafPeerTest, OfFailuresTheNewestAreDropped) {
  std::shared_ptr<HealthPeer> deaf;
  reactor_.RunSync([&] { deaf = far_hub_.FindAcceptedInLoop(9); });
  const std::string cause(kCauseBytesMax, 'x');
  for (int i = 0; i < kFlood; ++i) (void)deaf->socket().Say(FailureNotice(Id(2), cause, false));
  EXPECT_LT(AnswerTo("", 0).size(), size_t{3} << 19);
}

// While its socket is lost nothing is acknowledged.
TEST_F(DeafPeerTest, OfWhatIsToBeSaidAgainTheNewestAreDropped) {
  constexpr size_t kSaidMax = 16384;
  HealthSocket socket(&reactor_, [] {});
  TcpPair lost = MakeTcpPair(0);
  TcpPair next = MakeTcpPair(0);
  std::string said;
  reactor_.RunSync([&] {
    ASSERT_TRUE(socket.Open(std::move(lost.b), Seals(), true, false));
    socket.LetGo();
    for (int i = 0; i < kFlood; ++i) {
      const std::string notice = FailureNotice(Id(2), std::to_string(i), false);
      (void)socket.Say(notice);
      if (static_cast<size_t>(i) <= kSaidMax) said += notice;
    }
    ASSERT_TRUE(socket.Open(std::move(next.b), Seals(), true, false));
  });
  std::string heard;
  Deadline deadline;
  for (char bytes[4096]; heard.size() < said.size() && deadline.Yield();) {
    reactor_.RunSync([&] { socket.FlushInLoop(); });
    for (ssize_t got; (got = recv(next.a.get(), bytes, sizeof(bytes), MSG_DONTWAIT)) > 0;) {
      heard.append(bytes, static_cast<size_t>(got));
    }
  }
  EXPECT_TRUE(said == heard) << heard.size() << " bytes of " << said.size();
  reactor_.RunSync([&] { socket.Close(); });
}

}  // namespace
}  // namespace tcpx
