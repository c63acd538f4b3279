// What an Engine with zero_copy() promises beyond the suite: bytes exact, two completions, and a release that comes
// even when the peer never reads. Only io_uring has it.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

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

  void SubmitFrom(int fd, int buffer, char* data, size_t bytes) {
    op_.kind = IoOp::Kind::kSendZeroCopy;
    op_.fd = fd;
    op_.buffer = buffer;
    op_.iov[0] = {data, bytes};
    op_.iov_count = 1;
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

// Registered memory: the same bytes and completions. Once released and mapped anew, the old pages are out of the game.
TEST_F(ZeroCopyContractTest, RegisteredMemoryCanComeAndGo) {
  constexpr size_t kBytes = 200000;
  TcpPair pair = MakeTcpPair();
  void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, at);
  for (char fill : {'a', 'b', 'c'}) {
    ASSERT_EQ(at, mmap(at, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    std::memset(at, fill, kBytes);
    const int buffer = engine_->RegisterBuffer(at, kBytes);
    if (buffer == kNoBuffer) GTEST_SKIP() << "this kernel registers no buffers (Linux 5.19), or the limit of memlock";
    SubmitFrom(pair.a.get(), buffer, static_cast<char*>(at) + 100, kBytes - 200);
    const Completion sent = Next();
    ASSERT_EQ(static_cast<int>(kBytes - 200), sent.result);
    EXPECT_EQ(std::string(kBytes - 200, fill), ReceiveAll(pair.b.get(), kBytes - 200));
    while (op_.in_flight) Next();
    engine_->ReleaseBuffer(buffer);
  }
  munmap(at, kBytes);
}

TEST_F(ZeroCopyContractTest, RegisteredBuffersAreLimitedAndComeBack) {
  char page[4096];
  std::vector<int> held;
  for (int i = 0; i < 100000; ++i) {
    const int buffer = engine_->RegisterBuffer(page, sizeof(page));
    if (buffer == kNoBuffer) break;
    held.push_back(buffer);
  }
  if (held.empty()) GTEST_SKIP() << "this kernel registers no buffers (Linux 5.19), or the limit of memlock";
  ASSERT_LT(held.size(), 100000u);
  for (int buffer : held) engine_->ReleaseBuffer(buffer);
  EXPECT_NE(kNoBuffer, engine_->RegisterBuffer(page, sizeof(page)));
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
