// What every Engine promises (net_socket/engine/engine.h), on the fake one, epoll and io_uring: bytes, ends and errors.
#include "tests/contract/engine_contract.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace tcpx {
namespace {

TEST_P(EngineContractTest, MovesBytes) {
  TcpPair pair = MakeTcpPair();
  const std::string text = "hello";
  IoOp send;
  for (size_t sent = 0; sent < text.size();) {
    Send(&send, pair.a.get(), &text[sent], text.size() - sent);
    EXPECT_TRUE(send.in_flight);
    const int result = Result(&send);
    ASSERT_LT(0, result);
    sent += static_cast<size_t>(result);
  }
  EXPECT_EQ(text, ReceiveAll(pair.b.get(), text.size()));
}

TEST_P(EngineContractTest, ReceiveWaitsForDataAndMayBeShort) {
  TcpPair pair = MakeTcpPair();
  char data[100];
  IoOp receive;
  Receive(&receive, pair.b.get(), data, sizeof(data));
  ExpectNothing();
  EXPECT_TRUE(receive.in_flight);
  ASSERT_TRUE(WriteAll(pair.a.get(), "abc"));
  const int result = Result(&receive);
  ASSERT_TRUE(result >= 1 && result <= 3) << result;
  EXPECT_EQ(std::string("abc").substr(0, static_cast<size_t>(result)), std::string(data, static_cast<size_t>(result)));
}

TEST_P(EngineContractTest, GathersAndScatters) {
  TcpPair pair = MakeTcpPair();
  char out[] = "0123456789";
  IoOp send;
  send.kind = IoOp::Kind::kSend;
  send.fd = pair.a.get();
  send.iov[0] = {out, 1};
  send.iov[1] = {out + 1, 2};
  send.iov[2] = {out + 3, 3};
  send.iov[3] = {out + 6, 4};
  send.iov_count = 4;
  engine_->Submit(&send);
  const int sent = Result(&send);
  ASSERT_LT(0, sent);
  char in[11] = "##########";
  IoOp receive;
  receive.kind = IoOp::Kind::kReceive;
  receive.fd = pair.b.get();
  receive.iov[0] = {in, 3};
  receive.iov[1] = {in + 3, 7};
  receive.iov_count = 2;
  engine_->Submit(&receive);
  const int got = Result(&receive);
  ASSERT_TRUE(got > 0 && got <= sent) << got;
  EXPECT_EQ(std::string(out, static_cast<size_t>(got)), std::string(in, static_cast<size_t>(got)));
  EXPECT_EQ(std::string(10 - static_cast<size_t>(got), '#'), std::string(in + got));
}

TEST_P(EngineContractTest, EndOfStreamIsZero) {
  TcpPair pair = MakeTcpPair();
  char data[10];
  IoOp receive;
  Receive(&receive, pair.b.get(), data, sizeof(data));
  ExpectNothing();
  ASSERT_TRUE(WriteAll(pair.a.get(), "x"));
  EXPECT_EQ(1, Result(&receive));
  Receive(&receive, pair.b.get(), data, sizeof(data));
  ExpectNothing();
  pair.a.reset();
  EXPECT_EQ(0, Result(&receive));
  // And again, for who asks again.
  Receive(&receive, pair.b.get(), data, sizeof(data));
  EXPECT_EQ(0, Result(&receive));
}

TEST_P(EngineContractTest, ResetEndsAWaitingReceive) {
  TcpPair pair = MakeTcpPair();
  char data[10];
  IoOp receive;
  Receive(&receive, pair.b.get(), data, sizeof(data));
  ExpectNothing();
  ResetSocket(std::move(pair.a));
  EXPECT_EQ(-ECONNRESET, Result(&receive));
}

TEST_P(EngineContractTest, ResetEndsAWaitingSend) {
  TcpPair pair = MakeTcpPair(64 << 10);
  FillSocket(pair.b.get());
  const std::string data(1000, 'x');
  IoOp send;
  Send(&send, pair.b.get(), data.data(), data.size());
  ExpectNothing();
  ResetSocket(std::move(pair.a));
  EXPECT_EQ(-ECONNRESET, Result(&send));
}

TEST_P(EngineContractTest, SendAfterShutdownIsBrokenPipeWithoutASignal) {
  TcpPair pair = MakeTcpPair();
  ASSERT_EQ(0, shutdown(pair.a.get(), SHUT_WR));
  IoOp send;
  Send(&send, pair.a.get(), "x", 1);
  EXPECT_EQ(-EPIPE, Result(&send));
}

TEST_P(EngineContractTest, BadDescriptorIsAResult) {
  IoOp receive;
  char data[10];
  const int closed = MakeTcpPair().a.get();
  Receive(&receive, closed, data, sizeof(data));
  EXPECT_EQ(-EBADF, Result(&receive));
}

TEST_P(EngineContractTest, BothDirectionsOfOneSocketAtOnce) {
  TcpPair pair = MakeTcpPair(64 << 10);
  FillSocket(pair.a.get());
  char in[10];
  const std::string out(1000, 'o');
  IoOp receive, send;
  Receive(&receive, pair.a.get(), in, sizeof(in));
  Send(&send, pair.a.get(), out.data(), out.size());
  ExpectNothing();
  // The receive completes while the send still waits.
  ASSERT_TRUE(WriteAll(pair.b.get(), "x"));
  EXPECT_EQ(1, Result(&receive));
  EXPECT_TRUE(send.in_flight);
  Receive(&receive, pair.a.get(), in, sizeof(in));
  ExpectNothing();
  // And the send while the next receive waits.
  Deadline deadline;
  Completion completion;
  int count = 0;
  while (count == 0 && deadline.Yield()) {
    ReadAvailable(pair.b.get());
    count = engine_->Reap(&completion, 1, kMillisecond);
  }
  ASSERT_EQ(1, count);
  EXPECT_EQ(&send, completion.op);
  EXPECT_LT(0, completion.result);
  EXPECT_TRUE(receive.in_flight);
  engine_->Cancel(&receive);
  EXPECT_EQ(-ECANCELED, Result(&receive));
}

// More operations than any queue of an engine holds, completed in another order than they were submitted.
TEST_P(EngineContractTest, ManyOperations) {
  constexpr size_t kMany = 1200;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 2 * kMany + 50) GTEST_SKIP() << "the limit of open files is " << limit.rlim_max;
  std::vector<TcpPair> pairs(kMany);
  std::vector<IoOp> ops(kMany);
  std::vector<uint32_t> in(kMany, 0xffffffff);
  std::vector<size_t> have(kMany, 0);
  for (size_t i = 0; i < kMany; ++i) {
    pairs[i] = MakeTcpPair();
    Receive(&ops[i], pairs[i].b.get(), reinterpret_cast<char*>(&in[i]), sizeof(in[i]));
  }
  ExpectNothing();
  for (size_t i = kMany; i-- > 0;) {
    const uint32_t value = static_cast<uint32_t>(i);
    ASSERT_EQ(4, send(pairs[i].a.get(), &value, 4, 0));
  }
  for (size_t whole = 0; whole < kMany && !HasFailure();) {
    for (const Completion& completion : ReapSome(7)) {
      const size_t i = static_cast<size_t>(completion.op - ops.data());
      ASSERT_LT(0, completion.result);
      have[i] += static_cast<size_t>(completion.result);
      if (have[i] == 4) {
        EXPECT_EQ(i, in[i]);
        ++whole;
      } else {
        Receive(&ops[i], pairs[i].b.get(), reinterpret_cast<char*>(&in[i]) + have[i], 4 - have[i]);
      }
    }
  }
  ExpectNothing();
}

// A long stream through a tiny buffer: short results at every turn, and each byte in its place.
TEST_P(EngineContractTest, KeepsTheOrderOfBytes) {
  constexpr size_t kBytes = 300000;
  TcpPair pair = MakeTcpPair();
  const int tiny = 4096;
  ASSERT_EQ(0, setsockopt(pair.a.get(), SOL_SOCKET, SO_SNDBUF, &tiny, sizeof(tiny)));
  std::string out(kBytes, ' '), in(kBytes, ' ');
  Rng rng(TestSeed());
  for (char& c : out) c = static_cast<char>(rng.Next());
  IoOp send, receive;
  size_t sent = 0, got = 0;
  Send(&send, pair.a.get(), out.data(), kBytes);
  Receive(&receive, pair.b.get(), &in[0], std::min<size_t>(kBytes, 3000));
  while (got < kBytes && !HasFailure()) {
    for (const Completion& completion : ReapSome()) {
      ASSERT_LT(0, completion.result);
      if (completion.op == &send) {
        sent += static_cast<size_t>(completion.result);
        if (sent < kBytes) Send(&send, pair.a.get(), &out[sent], kBytes - sent);
      } else {
        got += static_cast<size_t>(completion.result);
        if (got < kBytes) Receive(&receive, pair.b.get(), &in[got], std::min<size_t>(kBytes - got, 3000));
      }
    }
  }
  EXPECT_EQ(kBytes, sent);
  EXPECT_TRUE(out == in);
}

TEST_P(EngineContractTest, GivesNoMoreThanAskedFor) {
  constexpr size_t kOps = 20;
  std::vector<TcpPair> pairs(kOps);
  std::vector<IoOp> ops(kOps);
  char data[kOps];
  for (size_t i = 0; i < kOps; ++i) {
    pairs[i] = MakeTcpPair();
    ASSERT_TRUE(WriteAll(pairs[i].a.get(), "x"));
    Receive(&ops[i], pairs[i].b.get(), &data[i], 1);
  }
  size_t total = 0;
  while (total < kOps && !HasFailure()) {
    const size_t count = ReapSome(3).size();
    EXPECT_LE(count, 3u);
    total += count;
  }
  EXPECT_EQ(kOps, total);
  ExpectNothing();
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineContractTest,
                         ::testing::Values("fake", "epoll", "io_uring", "io_uring_rung_1", "io_uring_rung_2",
                                           "io_uring_rung_3"),
                         [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace tcpx
