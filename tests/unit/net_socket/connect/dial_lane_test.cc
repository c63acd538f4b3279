// Which steps of a lane that is dialled may follow which, and what it says at its end.
#include "net_socket/connect/dial_lane.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

TEST(DialLaneTest, EveryPairOfSteps) {
  const char* const names[kDialSteps] = {"idle", "dialling", "hello", "answered"};
  std::string moves;
  for (int from = 0; from < kDialSteps; ++from) {
    for (int to = 0; to < kDialSteps; ++to) {
      if (MayMove(static_cast<DialStep>(from), static_cast<DialStep>(to))) {
        moves += std::string(names[from]) + ">" + names[to] + " ";
      }
    }
  }
  EXPECT_EQ("idle>dialling dialling>idle dialling>hello hello>idle hello>answered answered>idle ", moves);
}

// One lane to a port of this host.
class OneLane final : public DialLane::Owner {
 public:
  explicit OneLane(const Options& options, bool tries_on = false) : runtime_(options) {
    dialling_.tries_on = tries_on;
    device_.nics.emplace_back();
    device_.nics[0].interface.name = "lo";
    device_.nics[0].interface.address = *SocketAddress::Parse("127.0.0.1:0");
    dialling_.runtime = &runtime_;
    dialling_.request.device = &device_;
    dialling_.request.path.same_host = true;
    lane_ = std::make_unique<DialLane>(&dialling_, this, 0);
    EXPECT_TRUE(runtime_.reactor.Start().ok());
  }
  ~OneLane() override {
    InLoop([this] { lane_->Halt(); });
    runtime_.reactor.RequestStop();
    runtime_.reactor.Join();
  }

  void LaneAnswered(DialLane*) override {}
  const LanePath* OtherPath(const DialLane&) override { return nullptr; }
  void BeginAnew(absl::Status why) override { Finish(why); }
  bool Connected(const DialLane&, Hello*) override { return true; }
  bool RefusalIsFinal() override { return false; }
  void NotRefused() override { ++not_refused; }
  // Each time it is to ask once more.
  int64_t TakeDialTurn() override { return ++asked % 2 == 1 ? MonotonicNanos() + kMillisecond : 0; }
  void Finish(absl::Status status) override { end_ = std::string(status.message()); }

  template <typename Function>
  void InLoop(Function function) {
    runtime_.reactor.RunSync(function);
  }
  void Dial(const SocketAddress& peer) {
    InLoop([&] { lane_->DialInLoop(LanePath{&device_.nics[0], peer}); });
  }
  void DialAgain() {
    InLoop([this] {
      lane_->Halt();
      lane_->DialInLoop();
    });
  }
  void Halt() { lane_->Halt(); }
  // Waits until what it says of itself, or its end, has the text. Both.
  std::string Await(const std::string& text) {
    std::string said;
    for (int i = 0; i < 60000 && said.find(text) == std::string::npos; ++i) {
      InLoop([&] { said = std::string(lane_->Progress("").message()) + "; end: " + end_; });
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return said;
  }

  std::atomic<int> not_refused{0};
  std::atomic<int> asked{0};

 private:
  Runtime runtime_;
  Device device_;
  DialSetup dialling_;
  std::string end_;
  std::unique_ptr<DialLane> lane_;
};

// Like a path with a rule that rejects and a kernel that sends no more ICMP errors: the error says more than silence.
TEST(DialLaneTest, TheEndTellsOfTheFirstErrorBeforeTheSilence) {
  Options options;
  options.retry_count = 1;
  options.retry_sleep_ns = 3600 * kSecond;
  options.hello_timeout_ns = 300 * kMillisecond;
  OwnedFd listener = *StreamSocket(AF_INET);
  const SocketAddress any = *SocketAddress::Parse("127.0.0.1:0");
  ASSERT_EQ(0, bind(listener.get(), any.sockaddr(), any.length()));
  const SocketAddress peer = *LocalAddress(listener.get());
  OneLane lane(options);
  lane.Dial(peer);
  const std::string first = lane.Await("Connection refused");
  ASSERT_NE(std::string::npos, first.find("try 2 of 2: connect: Connection refused")) << first;
  EXPECT_EQ(0, lane.not_refused);
  // One connection fills the queue; what comes then is dropped.
  ASSERT_EQ(0, listen(listener.get(), 0));
  OwnedFd filler = *StreamSocket(AF_INET);
  ASSERT_TRUE(connect(filler.get(), peer.sockaddr(), peer.length()) == 0 || errno == EINPROGRESS);
  pollfd filled{listener.get(), POLLIN, 0};
  ASSERT_EQ(1, poll(&filled, 1, 60000));
  lane.DialAgain();
  const std::string end = lane.Await("end: connect to");
  EXPECT_NE(std::string::npos,
            end.find("(127.0.0.1): connect: timed out; before it: connect: Connection refused (111)"))
      << end;
  EXPECT_LT(0, lane.not_refused);
}

// Takes a hello at `listener` and answers it by `bytes`.
void AnswerHello(int listener, const std::string& bytes) {
  pollfd dialled{listener, POLLIN, 0};
  ASSERT_EQ(1, poll(&dialled, 1, 60000));
  const OwnedFd accepted(accept(listener, nullptr, nullptr));
  char hello[kHelloBytes];
  ASSERT_EQ(static_cast<ssize_t>(sizeof(hello)), recv(accepted.get(), hello, sizeof(hello), MSG_WAITALL));
  ASSERT_EQ(static_cast<ssize_t>(bytes.size()), send(accepted.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

std::string AnswerOf(HelloStatus status) {
  Answer answer;
  answer.status = status;
  char bytes[kAnswerBytesMax];
  return std::string(bytes, EncodeAnswer(answer, bytes));
}

// A device on the path may have said that; the peer's process alone knows that a connection is gone.
TEST(DialLaneTest, OneThatTriesOnIsEndedByTheWordOfTheProcessAlone) {
  OwnedFd listener = *StreamSocket(AF_INET);
  const SocketAddress any = *SocketAddress::Parse("127.0.0.1:0");
  ASSERT_EQ(0, bind(listener.get(), any.sockaddr(), any.length()));
  ASSERT_EQ(0, listen(listener.get(), 8));
  const Options options;
  OneLane lane(options, true);
  lane.Dial(*LocalAddress(listener.get()));
  const std::string strange[] = {std::string(kAnswerBytesMax, 'x'), AnswerOf(HelloStatus::kSecretWrong),
                                 AnswerOf(HelloStatus::kDuplicateLane)};
  for (const std::string& answer : strange) ASSERT_NO_FATAL_FAILURE(AnswerHello(listener.get(), answer));
  ASSERT_NO_FATAL_FAILURE(AnswerHello(listener.get(), AnswerOf(HelloStatus::kGone)));
  const std::string end = lane.Await("end: connect to");
  EXPECT_NE(std::string::npos, end.find(HelloStatusText(HelloStatus::kGone))) << end;
  EXPECT_EQ(2 * 3, lane.asked) << "each of them waits for its turn";
}

// TCPX_ENCRYPT is on, and the handshake left no keys, as nobody has a secret here.
TEST(DialLaneTest, ALaneWithoutKeysSaysNothingAfterItsHello) {
  Options options;
  options.encrypt = true;
  OwnedFd listener = *StreamSocket(AF_INET);
  const SocketAddress any = *SocketAddress::Parse("127.0.0.1:0");
  ASSERT_EQ(0, bind(listener.get(), any.sockaddr(), any.length()));
  ASSERT_EQ(0, listen(listener.get(), 8));
  OneLane lane(options);
  lane.Dial(*LocalAddress(listener.get()));
  pollfd dialled{listener.get(), POLLIN, 0};
  ASSERT_EQ(1, poll(&dialled, 1, 60000));
  const OwnedFd accepted(accept(listener.get(), nullptr, nullptr));
  char hello[kHelloBytes];
  ASSERT_EQ(static_cast<ssize_t>(sizeof(hello)), recv(accepted.get(), hello, sizeof(hello), MSG_WAITALL));
  Answer answer;
  answer.features = kFeatureEstablished;
  char bytes[kAnswerBytesMax];
  const size_t length = EncodeAnswer(answer, bytes);
  ASSERT_EQ(static_cast<ssize_t>(length), send(accepted.get(), bytes, length, MSG_NOSIGNAL));
  const std::string end = lane.Await("has no keys");
  EXPECT_NE(std::string::npos, end.find("has no keys")) << end;
  lane.InLoop([&lane] { lane.Halt(); });
  char byte;
  EXPECT_EQ(0, recv(accepted.get(), &byte, 1, 0));
}

}  // namespace
}  // namespace tcpx
