// What an Engine with zero_copy() promises beyond the suite: bytes exact, two completions, and a release that comes
// even when the peer never reads. Only io_uring has it.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "common/fd.h"
#include "net_socket/engine/engine.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

class ZeroCopyContractTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeUringEngine();
    if (!made.ok()) GTEST_SKIP() << "no io_uring here: " << made.status();
    if (!(*made)->zero_copy()) GTEST_SKIP() << "this kernel has no SENDMSG_ZC (Linux 6.1)";
    engine_ = *std::move(made);
  }

  void Submit(int fd) {
    op_.kind = IoOp::Kind::kSendZeroCopy;
    op_.fd = fd;
    op_.iov[0] = {header_, sizeof(header_)};
    op_.iov[1] = {&payload_[0], payload_.size()};
    op_.iov_count = 2;
    engine_->Submit(&op_);
  }

  static std::string ReceiveAll(int fd, size_t bytes) {
    std::string got(bytes, '?');
    size_t have = 0;
    while (have < bytes) {
      const ssize_t n = recv(fd, &got[have], bytes - have, 0);
      if (n <= 0) break;
      have += static_cast<size_t>(n);
    }
    return got.substr(0, have);
  }

  Completion Next() {
    Completion completion;
    Deadline deadline;
    while (engine_->Reap(&completion, 1, 5000000) == 0) {
      if (deadline.Over()) {
        ADD_FAILURE() << "nothing completed in time";
        break;
      }
    }
    return completion;
  }

  std::unique_ptr<Engine> engine_;
  IoOp op_;
  char header_[4] = {'h', 'e', 'a', 'd'};
  std::string payload_ = std::string(100000, 'p');
};

TEST_F(ZeroCopyContractTest, BytesThenRelease) {
  TcpPair pair = MakeTcpPair();
  Submit(pair.a.get());
  const Completion sent = Next();
  ASSERT_EQ(&op_, sent.op);
  ASSERT_EQ(static_cast<int>(sizeof(header_) + payload_.size()), sent.result);
  EXPECT_FALSE(sent.release);
  ASSERT_TRUE(sent.held);
  EXPECT_TRUE(op_.in_flight) << "its pages are still the kernel's";
  EXPECT_EQ("head" + payload_, ReceiveAll(pair.b.get(), sizeof(header_) + payload_.size()));
  const Completion release = Next();
  EXPECT_EQ(&op_, release.op);
  EXPECT_TRUE(release.release);
  EXPECT_FALSE(release.held);
  EXPECT_EQ(1, release.result) << "loopback always copies";
  EXPECT_FALSE(op_.in_flight);
}

TEST_F(ZeroCopyContractTest, AResetReleasesWhatThePeerNeverRead) {
  TcpPair pair = MakeTcpPair();
  const int small = 64 << 10;
  ASSERT_EQ(0, setsockopt(pair.a.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
  ASSERT_EQ(0, setsockopt(pair.b.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
  payload_.assign(4 << 20, 'p');  // More than both hold, less than an unprivileged process may pin.
  Submit(pair.a.get());
  Completion completion;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(0, engine_->Reap(&completion, 1, 5000000)) << completion.result;
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  ASSERT_EQ(0, connect(pair.a.get(), &none, sizeof(none)));
  while (op_.in_flight) {
    completion = Next();
    ASSERT_EQ(&op_, completion.op);
  }
}

TEST_F(ZeroCopyContractTest, ARefusalIsAResult) {
  int fds[2];
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
  OwnedFd a(fds[0]), b(fds[1]);
  Submit(a.get());
  Completion completion = Next();
  EXPECT_EQ(-EOPNOTSUPP, completion.result);
  while (op_.in_flight) completion = Next();
  EXPECT_FALSE(op_.in_flight);
}

}  // namespace
}  // namespace tcpx
