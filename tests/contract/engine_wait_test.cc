// What every Engine promises about waiting: cancels, wakes, room to write, descriptors that come back.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/contract/engine_contract.h"

namespace tcpx {
namespace {

TEST_P(EngineContractTest, CancelEndsAWaitingReceiveAndLosesNothing) {
  TcpPair pair = MakeTcpPair();
  char data[10];
  IoOp receive;
  Receive(&receive, pair.b.get(), data, sizeof(data));
  ExpectNothing();
  engine_->Cancel(&receive);
  EXPECT_TRUE(receive.in_flight);
  EXPECT_EQ(-ECANCELED, Result(&receive));
  ExpectNothing();
  ASSERT_TRUE(WriteAll(pair.a.get(), "later"));
  EXPECT_EQ("later", ReceiveAll(pair.b.get(), 5));
}

// The cancel and the data race: in both cases the operation completes once and no byte is lost.
TEST_P(EngineContractTest, CancelThatMeetsData) {
  for (const bool reach_kernel : {false, true}) {
    TcpPair pair = MakeTcpPair();
    char data[10];
    IoOp receive;
    Receive(&receive, pair.b.get(), data, sizeof(data));
    if (reach_kernel) ExpectNothing();
    ASSERT_TRUE(WriteAll(pair.a.get(), "abc"));
    engine_->Cancel(&receive);
    engine_->Cancel(&receive);
    const int result = Result(&receive);
    ExpectNothing();
    if (result == -ECANCELED) {
      EXPECT_EQ("abc", ReceiveAll(pair.b.get(), 3));
    } else {
      ASSERT_TRUE(result >= 1 && result <= 3) << result;
      const std::string all =
          std::string(data, static_cast<size_t>(result)) + ReceiveAll(pair.b.get(), 3 - static_cast<size_t>(result));
      EXPECT_EQ("abc", all);
    }
  }
}

TEST_P(EngineContractTest, CancelEndsAStuckSendAndTellsWhatItMoved) {
  TcpPair pair = MakeTcpPair(32 << 10);
  const size_t before = FillSocket(pair.a.get());
  const std::string data(100000, 'x');
  IoOp send;
  Send(&send, pair.a.get(), data.data(), data.size());
  ExpectNothing();
  engine_->Cancel(&send);
  const int result = Result(&send);
  ASSERT_TRUE(result == -ECANCELED || result > 0) << result;
  const size_t expected = before + (result > 0 ? static_cast<size_t>(result) : 0);
  ASSERT_EQ(0, shutdown(pair.a.get(), SHUT_WR));
  size_t got = 0;
  Deadline deadline;
  while (got < expected && deadline.Yield()) got += ReadAvailable(pair.b.get()).size();
  EXPECT_EQ(expected, got);
  char more;
  EXPECT_EQ(0, recv(pair.b.get(), &more, 1, 0)) << "more came than the operation reported";
}

TEST_P(EngineContractTest, CancelOfAnIdleOperationDoesNothing) {
  TcpPair pair = MakeTcpPair();
  IoOp op;
  op.fd = pair.a.get();
  engine_->Cancel(&op);
  ExpectNothing();
  EXPECT_FALSE(op.in_flight);
}

TEST_P(EngineContractTest, CancelEndsAWaitForWritable) {
  TcpPair pair = MakeTcpPair(32 << 10);
  FillSocket(pair.a.get());
  IoOp writable;
  Start(&writable, IoOp::Kind::kWritable, pair.a.get(), nullptr, 0);
  ExpectNothing();
  engine_->Cancel(&writable);
  EXPECT_EQ(-ECANCELED, Result(&writable));
  ExpectNothing();
}

TEST_P(EngineContractTest, WritableWhenTheSocketTakesDataAgain) {
  TcpPair pair = MakeTcpPair(32 << 10);
  IoOp writable;
  Start(&writable, IoOp::Kind::kWritable, pair.a.get(), nullptr, 0);
  EXPECT_EQ(0, Result(&writable)) << "an empty socket takes data at once";
  for (int round = 0; round < 3; ++round) {
    size_t left = FillSocket(pair.a.get());
    Start(&writable, IoOp::Kind::kWritable, pair.a.get(), nullptr, 0);
    ExpectNothing();
    Deadline deadline;
    while (left > 0 && deadline.Yield()) left -= ReadAvailable(pair.b.get(), left).size();
    ASSERT_EQ(0u, left);
    EXPECT_EQ(0, Result(&writable));
  }
}

TEST_P(EngineContractTest, WritableObeysTheUnsentLimit) {
  TcpPair pair = MakeTcpPair(256 << 10);
  const int lowat = 16 << 10;
  ASSERT_EQ(0, setsockopt(pair.a.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat)));
  size_t left = FillSocket(pair.a.get());
  IoOp writable;
  Start(&writable, IoOp::Kind::kWritable, pair.a.get(), nullptr, 0);
  ExpectNothing();
  Deadline deadline;
  while (left > 0 && deadline.Yield()) left -= ReadAvailable(pair.b.get(), left).size();
  EXPECT_EQ(0, Result(&writable));
}

TEST_P(EngineContractTest, WakeFromAnotherThreadEndsAWait) {
  Completion completion;
  for (int round = 0; round < 20; ++round) {
    std::thread waker([this, round] {
      if (round % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      engine_->Wake();
    });
    // Without the wake this waits for ever. A wait may also end early, but gives nothing then.
    EXPECT_EQ(0, engine_->Reap(&completion, 1, -1));
    waker.join();
  }
}

TEST_P(EngineContractTest, AWakeBeforeTheWaitCounts) {
  Completion completion;
  engine_->Wake();
  engine_->Wake();
  EXPECT_EQ(0, engine_->Reap(&completion, 1, -1));
  // Several wakes may count as one, but none is left behind that would keep the thread from sleeping.
  engine_->Wake();
  EXPECT_EQ(0, engine_->Reap(&completion, 1, -1));
}

// Where completions appear at any time (io_uring before Linux 6.1), the wake is there before the wait begins. To take
// it for nothing and to wait then was a hang: who woke takes the thread for awake.
TEST_P(EngineContractTest, AWakeBetweenTwoLooksCounts) {
  Completion completion;
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(0, engine_->Reap(&completion, 1, 0));
    engine_->Wake();
    (void)getppid();  // Some completions wait for a system call of their thread.
    EXPECT_EQ(0, engine_->Reap(&completion, 1, -1));
  }
}

TEST_P(EngineContractTest, AWaitEndsWithItsTime) {
  Completion completion;
  EXPECT_EQ(0, engine_->Reap(&completion, 1, 0));
  EXPECT_EQ(0, engine_->Reap(&completion, 1, 2 * kMillisecond));
}

// A descriptor's number comes back for another socket: nothing of the old one may be left.
TEST_P(EngineContractTest, ForgottenDescriptorMayBeUsedAgain) {
  char data[10];
  for (int round = 0; round < 10; ++round) {
    TcpPair pair = MakeTcpPair();
    const int number = pair.b.get();
    IoOp receive;
    Receive(&receive, number, data, sizeof(data));
    ExpectNothing();
    engine_->Cancel(&receive);
    EXPECT_EQ(-ECANCELED, Result(&receive));
    engine_->Forget(number);
    TcpPair next = MakeTcpPair();
    // dup2 closes the old socket and gives its number to the new one in one step.
    ASSERT_EQ(number, dup2(next.b.get(), number));
    Receive(&receive, number, data, sizeof(data));
    ExpectNothing();
    ASSERT_TRUE(WriteAll(next.a.get(), "n"));
    EXPECT_EQ(1, Result(&receive));
    EXPECT_EQ('n', data[0]);
    engine_->Forget(number);
  }
}

TEST_P(EngineContractTest, ForgetOfAnUnknownDescriptorDoesNothing) {
  engine_->Forget(12345);
  ExpectNothing();
}

}  // namespace
}  // namespace tcpx
