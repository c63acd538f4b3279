#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

int OpenNull() {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_GE(fd, 0);
  return fd;
}

// Runs `body` in a forked child; the exit status is what it returns.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

TEST(OwnedFdTest, OwnsNothingAtFirst) {
  OwnedFd fd;
  EXPECT_FALSE(fd.valid());
  EXPECT_FALSE(static_cast<bool>(fd));
  EXPECT_EQ(fd.get(), -1);
  EXPECT_EQ(fd.release(), -1);
  EXPECT_EQ(OwnedFd(-7).get(), -1);
}

TEST(OwnedFdTest, ClosesAtTheEnd) {
  const int number = OpenNull();
  {
    OwnedFd fd(number);
    EXPECT_TRUE(fd.valid());
    EXPECT_EQ(fd.get(), number);
    EXPECT_TRUE(IsOwnedFd(number));
  }
  EXPECT_FALSE(IsOpen(number));
  EXPECT_FALSE(IsOwnedFd(number));
}

TEST(OwnedFdTest, ReleaseLeavesItOpenAndUnowned) {
  OwnedFd fd(OpenNull());
  const int number = fd.release();
  EXPECT_FALSE(fd.valid());
  EXPECT_FALSE(IsOwnedFd(number));
  EXPECT_TRUE(IsOpen(number));
  close(number);
}

TEST(OwnedFdTest, ResetClosesTheOldOne) {
  const int first = OpenNull();
  const int second = OpenNull();
  OwnedFd fd(first);
  fd.reset(second);
  EXPECT_FALSE(IsOpen(first));
  EXPECT_TRUE(IsOpen(second));
  fd.reset(second);  // its own number: nothing happens
  EXPECT_TRUE(IsOpen(second));
  EXPECT_TRUE(IsOwnedFd(second));
  fd.reset();
  EXPECT_FALSE(IsOpen(second));
  EXPECT_FALSE(fd.valid());
}

TEST(OwnedFdTest, MovesWithoutClosing) {
  const int number = OpenNull();
  const int other = OpenNull();
  OwnedFd from(number);
  OwnedFd to(std::move(from));
  EXPECT_EQ(from.get(), -1);  // NOLINT(bugprone-use-after-move): the promise under test
  EXPECT_EQ(to.get(), number);
  OwnedFd assigned(other);
  assigned = std::move(to);
  EXPECT_EQ(assigned.get(), number);
  EXPECT_FALSE(IsOpen(other));
  EXPECT_TRUE(IsOpen(number));
  EXPECT_TRUE(IsOwnedFd(number));
}

TEST(OwnedFdTest, AChildClosesExactlyTheOwnedOnes) {
  OwnedFd low(OpenNull());
  const int high_number = fcntl(low.get(), F_DUPFD_CLOEXEC, 200);  // in another word of the table
  ASSERT_GE(high_number, 200);
  OwnedFd high(high_number);
  OwnedFd given_up(OpenNull());
  const int foreign = given_up.release();
  const int result = InChild([&] {
    CloseAllOwnedFdsInChild();
    if (IsOpen(low.get()) || IsOpen(high.get())) return 1;
    if (!IsOpen(foreign)) return 2;
    const int reused = OpenNull();  // the lowest free number: low's
    low.reset();                    // a stale owner must not close it
    return reused >= 0 && IsOpen(reused) ? 0 : 3;
  });
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(IsOpen(low.get()));
  EXPECT_TRUE(IsOpen(high.get()));
  close(foreign);
}

TEST(DescriptorLimitTest, RaisesTheSoftLimitToTheHardOne) {
  const int result = InChild([] {
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < 64) return 1;
    limit.rlim_cur = 32;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || DescriptorLimit() != 32) return 2;
    if (!RaiseDescriptorLimit().ok() || !RaiseDescriptorLimit().ok()) return 3;
    rlimit raised;
    if (getrlimit(RLIMIT_NOFILE, &raised) != 0) return 4;
    return raised.rlim_cur == limit.rlim_max && raised.rlim_max == limit.rlim_max ? 0 : 5;
  });
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace tcpx
