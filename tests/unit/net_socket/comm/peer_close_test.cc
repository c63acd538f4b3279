// A peer that has all closes in order, while a progress thread has not yet heard that the kernel took the last byte.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/send_comm.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

// Holds its thread twice: until Open, and then after the next call of the engine, before the completions of lanes that
// were kicked in between are served.
class Gate final : public PoolLane {
 public:
  explicit Gate(int fd) { op_.fd = fd; }

  void AdvanceInLoop(Engine* engine) override {
    if (stage_ == 0) {
      stage_ = 1;
      Hold(&opened_);
      ProgressPool::Kick(this);  // The latest is served first.
    } else if (stage_ == 1) {
      stage_ = 2;
      op_.kind = IoOp::Kind::kWritable;
      Submit(engine, &op_);
    }
  }
  void CompleteInLoop(const Completion&) override { Hold(&let_go_); }

  void AwaitHeld() const {
    for (const Deadline deadline; !held_.load() && deadline.Yield();) {
    }
    ASSERT_TRUE(held_.load());
  }
  void Open() { opened_.store(true); }
  void LetGo() {
    opened_.store(true);
    let_go_.store(true);
  }

 private:
  void Hold(const std::atomic<bool>* until) {
    held_.store(true);
    for (const Deadline deadline; !until->load() && deadline.Yield();) {
    }
  }

  int stage_ = 0;
  std::atomic<bool> held_{false};
  std::atomic<bool> opened_{false};
  std::atomic<bool> let_go_{false};
};

struct Way {
  EngineChoice engine;
  Switch zero_copy;
};

class PeerCloseTest : public ::testing::TestWithParam<Way> {
 protected:
  static constexpr size_t kBytes = 100000;  // one chunk: bulk, and too short to be cut

  void SetUp() override {
    std::string reason;
    if (GetParam().engine == EngineChoice::kIoUring && ProbeEngine(GetParam().engine, &reason) != GetParam().engine) {
      GTEST_SKIP() << "no io_uring here: " << reason;
    }
    runtime_.pool = std::make_unique<ProgressPool>();
    ASSERT_TRUE(runtime_.reactor.Start().ok());
    ASSERT_TRUE(runtime_.pool->Start(GetParam().engine, 1, {}, 0).ok());
    ASSERT_TRUE(runtime_.reactor.RunSync([this] { MakeCommInLoop(); }));
  }

  void TearDown() override {
    if (gate_ != nullptr) LetGo();
    if (comm_ != nullptr) comm_->Close();
    comm_.reset();
    if (runtime_.pool != nullptr) runtime_.pool->Stop();
    for (TcpPair& pair : pairs_) pair.b = OwnedFd();  // Nothing lingers then.
    runtime_.reactor.RequestStop();
    runtime_.reactor.Join();
  }

  void MakeCommInLoop() {
    auto communicator = std::make_shared<Communicator>();
    communicator->log = [](LogLevel, uint64_t, const char*, int, const char*) {};
    ConnectionSetup setup;
    setup.runtime = &runtime_;
    setup.communicator = std::move(communicator);
    setup.express_bytes = 65536;
    setup.lanes.resize(2);
    for (int lane = 0; lane < 2; ++lane) {
      setup.lanes[lane].fd = std::move(pairs_[lane].a);
      setup.lanes[lane].profile.zero_copy = GetParam().zero_copy;
    }
    comm_ = std::make_unique<SendComm>(std::move(setup));
  }

  Request* Post() {
    SendArgs args;
    args.data = payload_.data();
    args.bytes = payload_.size();
    Request* request = nullptr;
    const absl::Status status = comm_->Send(args, &request);
    EXPECT_TRUE(status.ok()) << status;
    unread_ = kHeaderBytes + payload_.size();
    return request;
  }

  // Reads what a bulk message puts on the bulk lane; false where it did not come within that time.
  bool ReadMessage(int64_t within_ns = 60 * kSecond) {
    const int64_t end = MonotonicNanos() + within_ns;
    while (unread_ > 0 && MonotonicNanos() < end) {
      unread_ -= ReadAvailable(pairs_[1].b.get()).size();
      std::this_thread::yield();
    }
    return unread_ == 0;
  }

  // Posts a message that a thread has given to the kernel and not heard of. False where the gate held the thread before
  // the lane sent: which of the two is served first is the threads' hurry. That message is finished then.
  bool PostUnheard(Request** request) {
    gate_ = std::make_unique<Gate>(writable_.a.get());
    runtime_.pool->Attach(gate_.get());
    gate_->AwaitHeld();
    *request = Post();
    gate_->Open();
    if (ReadMessage(kSecond / 5)) return true;
    LetGo();
    EXPECT_TRUE(ReadMessage() && Finish(*request).ok());
    return false;
  }

  void LetGo() {
    gate_->LetGo();
    ProgressPool::Detach(gate_.get());
    gate_.reset();
  }

  absl::Status Finish(Request* request) {
    bool done = false;
    absl::Status status;
    for (const Deadline deadline; status.ok() && !done && deadline.Yield();) {
      status = comm_->Test(request, &done, nullptr);
    }
    EXPECT_TRUE(done || !status.ok());
    return status;
  }

  // Returns once the reactor has seen it: the second function runs after a look at all sockets.
  void ClosePeer() {
    for (TcpPair& pair : pairs_) shutdown(pair.b.get(), SHUT_WR);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(runtime_.reactor.RunSync([] {}));
  }

  const Options options_;
  Runtime runtime_{options_};
  TcpPair pairs_[2] = {MakeTcpPair(), MakeTcpPair()};
  TcpPair writable_ = MakeTcpPair();
  std::unique_ptr<Gate> gate_;
  size_t unread_ = 0;  // of the message in flight
  std::string payload_ = std::string(kBytes, 'p');
  std::unique_ptr<SendComm> comm_;
};

TEST_P(PeerCloseTest, ASendThatThePeerHasWholeIsNoError) {
  Request* request = Post();
  ASSERT_TRUE(ReadMessage() && Finish(request).ok());
  bool unheard = false;
  for (int attempt = 0; attempt < 20 && !unheard; ++attempt) unheard = PostUnheard(&request);
  if (!unheard) GTEST_SKIP() << "the progress thread was never caught between the kernel's word and the lane's";
  ClosePeer();
  bool done = false;
  absl::Status status = comm_->Test(request, &done, nullptr);
  EXPECT_TRUE(status.ok()) << status;
  LetGo();
  // The thread may have heard before the gate held it.
  if (!done) status = Finish(request);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(PeerCloseTest, ASendThatTheKernelHasNotTakenIsOne) {
  payload_.assign(size_t{64} << 20, 'p');  // more than both buffers hold
  Request* const request = Post();
  ClosePeer();
  EXPECT_EQ("the peer closed the connection", Finish(request).message());
}

// Nobody is left to receive what comes after it.
TEST_P(PeerCloseTest, TheNextSendIsOne) {
  ClosePeer();
  SendArgs args;
  args.data = payload_.data();
  args.bytes = payload_.size();
  Request* request = nullptr;
  EXPECT_EQ("the peer closed the connection", comm_->Send(args, &request).message());
}

INSTANTIATE_TEST_SUITE_P(Ways, PeerCloseTest,
                         ::testing::Values(Way{EngineChoice::kEpoll, Switch::kOff},
                                           Way{EngineChoice::kIoUring, Switch::kOff},
                                           Way{EngineChoice::kIoUring, Switch::kOn}),
                         [](const auto& way) {
                           const std::string engine = way.param.engine == EngineChoice::kEpoll ? "epoll" : "io_uring";
                           return engine + (way.param.zero_copy == Switch::kOn ? "_zerocopy" : "");
                         });

}  // namespace
}  // namespace tcpx
