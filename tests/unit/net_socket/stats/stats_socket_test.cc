#include "net_socket/stats/stats_socket.h"

#include <gtest/gtest.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "net_socket/stats/process_mark.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

OwnedFd Connect(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  const bool abstract = name[0] == '@';
  if (abstract) address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) fd.reset();
  return fd;
}

// Abstract names are the whole machine's, and sandboxes have PIDs of their own.
std::string UniqueName(const char* what) { return absl::StrCat("@tcpx-test-", what, "-", MonotonicNanos(), "-%p"); }

class StatsSocketTest : public testing::Test {
 protected:
  // Names of sockets are short: those of files are relative.
  StatsSocketTest() { EXPECT_EQ(0, chdir(testing::TempDir().c_str())); }
  void Open(const std::string& name) {
    auto opened = StatsSocket::Open(name);
    ASSERT_TRUE(opened.ok()) << opened.status();
    socket_ = *std::move(opened);
  }
  void Serve(int64_t now_ns) {
    std::vector<pollfd> polls;
    socket_->AddPolls(now_ns, &polls);
    ASSERT_GE(poll(polls.data(), polls.size(), 0), 0);
    most_polls_ = std::max(most_polls_, polls.size());
    socket_->Serve(polls, now_ns, [this] {
      ++asked_;
      return document_;
    });
  }
  // What comes until the end of the stream.
  std::string ReadAll(int fd) {
    std::string text;
    char bytes[65536];
    for (const Deadline deadline; !deadline.Over(); Serve(++now_ns_)) {
      const ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (got == 0) return text;
      if (got > 0) text.append(bytes, static_cast<size_t>(got));
      if (got < 0 && errno != EAGAIN) return "broken";
    }
    return "too late";
  }

  std::unique_ptr<StatsSocket> socket_;
  std::shared_ptr<const std::string> document_ = std::make_shared<const std::string>(3 << 20, 'x');
  int64_t now_ns_ = 1;
  int asked_ = 0;
  size_t most_polls_ = 0;
};

TEST_F(StatsSocketTest, GivesEachTheWholeDocument) {
  Open(UniqueName("whole"));
  for (int i = 0; i < 3; ++i) {
    const OwnedFd client = Connect(socket_->name());
    ASSERT_TRUE(client.valid());
    EXPECT_EQ(*document_, ReadAll(client.get()));
  }
}

TEST_F(StatsSocketTest, AutoIsNamedByUserAndProcess) {
  Open("auto");
  EXPECT_EQ(absl::StrCat("@tcpx-", geteuid(), "-", ProcessMark()), socket_->name());
  EXPECT_TRUE(Connect(socket_->name()).valid());
}

TEST_F(StatsSocketTest, AFileIsTheUsersAloneAndGoesAtTheEnd) {
  const std::string path = absl::StrCat("s", getpid());
  Open(path);
  struct stat about {};
  ASSERT_EQ(0, stat(path.c_str(), &about));
  EXPECT_EQ(0600u, about.st_mode & 0777);
  EXPECT_EQ(*document_, ReadAll(Connect(path).get()));
  socket_ = nullptr;
  EXPECT_NE(0, stat(path.c_str(), &about));
}

TEST_F(StatsSocketTest, ReplacesWhatADeadProcessLeftAndNothingElse) {
  const std::string path = absl::StrCat("t", getpid());
  Open(path);
  EXPECT_TRUE(absl::StrContains(StatsSocket::Open(path).status().message(), "is taken"));
  const pid_t child = fork();
  if (child == 0) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string left = path + "x";
    std::memcpy(address.sun_path, left.data(), left.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    _exit(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 && listen(fd, 1) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(0, status);
  EXPECT_TRUE(StatsSocket::Open(path + "x").ok());
  std::ofstream(path + "y") << "no socket";
  EXPECT_FALSE(StatsSocket::Open(path + "y").ok());
  EXPECT_EQ(0, access((path + "y").c_str(), F_OK));
  (void)unlink((path + "y").c_str());
}

TEST_F(StatsSocketTest, NamesThatCannotBe) {
  EXPECT_FALSE(StatsSocket::Open(std::string(200, 'x')).ok());
  EXPECT_FALSE(StatsSocket::Open("/there/is/no/such/folder").ok());
}

TEST_F(StatsSocketTest, ACrowdThatNeverReadsIsBounded) {
  Open(UniqueName("crowd"));
  std::vector<OwnedFd> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.push_back(Connect(socket_->name()));
    Serve(++now_ns_);
  }
  EXPECT_LE(most_polls_, StatsSocket::kClientsMax + 1);
  // All of it happened within one kAcceptNs.
  EXPECT_LE(asked_, StatsSocket::kAcceptsMax);
  now_ns_ += StatsSocket::kClientNs + StatsSocket::kAcceptNs;
  Serve(now_ns_);
  crowd.clear();
  for (int i = 0; i < 100; ++i) Serve(now_ns_ += StatsSocket::kAcceptNs);
  EXPECT_EQ(*document_, ReadAll(Connect(socket_->name()).get()));
}

TEST_F(StatsSocketTest, ClientsThatCloseHalfOrTalkAreServedToo) {
  Open(UniqueName("half"));
  const OwnedFd half = Connect(socket_->name());
  shutdown(half.get(), SHUT_WR);
  EXPECT_EQ(*document_, ReadAll(half.get()));
  const OwnedFd talks = Connect(socket_->name());
  ASSERT_EQ(5, send(talks.get(), "GET /", 5, MSG_NOSIGNAL));
  const std::string got = ReadAll(talks.get());
  EXPECT_TRUE(got == *document_ || got == "broken");
  const OwnedFd deaf = Connect(socket_->name());
  shutdown(deaf.get(), SHUT_RD);
  Serve(++now_ns_);
  { const OwnedFd gone = Connect(socket_->name()); }
  Serve(++now_ns_);
  EXPECT_EQ(*document_, ReadAll(Connect(socket_->name()).get()));
}

TEST_F(StatsSocketTest, AnswersTheSameUserOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user to ask as";
  Open(UniqueName("user"));
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    const OwnedFd client = Connect(socket_->name());
    (void)!write(ends[1], "c", 1);
    if (!client.valid()) _exit(3);
    pollfd ready{client.get(), POLLIN, 0};
    (void)poll(&ready, 1, 60000);
    _exit(recv(client.get(), &byte, 1, MSG_DONTWAIT) == 1 ? 1 : 0);
  }
  close(ends[1]);
  char byte = 0;
  const bool asked = read(ends[0], &byte, 1) == 1;
  close(ends[0]);
  Serve(++now_ns_);
  int status = 0;
  waitpid(child, &status, 0);
  if (!asked) GTEST_SKIP() << "root can't become another user in this sandbox";
  EXPECT_EQ(0, status);
  EXPECT_EQ(0, asked_);
}

}  // namespace
}  // namespace tcpx
