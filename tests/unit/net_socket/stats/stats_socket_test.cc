#include "net_socket/stats/stats_socket.h"

#include <gtest/gtest.h>
#include <stddef.h>
#include <sys/inotify.h>
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
#include "common/this_host.h"
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
  StatsSocketTest() {
    EXPECT_EQ(0, chdir(testing::TempDir().c_str()));
    EXPECT_EQ(0, pipe(result_));
  }
  ~StatsSocketTest() override {
    close(result_[0]);
    close(result_[1]);
  }
  // What a process leaves that dies.
  static OwnedFd BindOnly(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(0, bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
    return fd;
  }
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

  int result_[2];
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

// A bound socket that does not listen yet looks like one that was left over: the name must not be seen before. The
// folder is watched: names come by a link to what listens.
TEST_F(StatsSocketTest, AFileIsThereOnlyOnceItAnswers) {
  const std::string folder = absl::StrCat("d", getpid());
  ASSERT_EQ(0, mkdir(folder.c_str(), 0700));
  const mode_t mask = umask(0);
  const OwnedFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(inotify_add_watch(watch.get(), folder.c_str(), IN_CREATE | IN_ATTRIB), 0);
  Open(folder + "/s");
  umask(mask);
  alignas(inotify_event) char bytes[4096];
  const ssize_t got = read(watch.get(), bytes, sizeof(bytes));
  std::vector<std::string> names;
  for (ssize_t at = 0; at < got;) {
    const auto* const event = reinterpret_cast<const inotify_event*>(bytes + at);
    EXPECT_TRUE((event->mask & IN_CREATE) != 0 || absl::StartsWith(event->name, "s.")) << "its mode came later";
    if ((event->mask & IN_CREATE) != 0) names.push_back(event->name);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  EXPECT_EQ((std::vector<std::string>{absl::StrCat("s.", ProcessMark()), "s"}), names);
  struct stat about {};
  ASSERT_EQ(0, stat((folder + "/s").c_str(), &about));
  EXPECT_EQ(0600u, about.st_mode & 0777);
  socket_ = nullptr;
  EXPECT_EQ(0, rmdir(folder.c_str())) << "something was left";
}

TEST_F(StatsSocketTest, OfManyThatStartAtOnceOneHasTheName) {
  for (int round = 0; round < 20; ++round) {
    const std::string path = absl::StrCat("r", getpid(), "-", round);
    { const OwnedFd left = BindOnly(path); }
    int go[2];
    int end[2];
    ASSERT_TRUE(pipe(go) == 0 && pipe(end) == 0);
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
      children.push_back(fork());
      if (children.back() != 0) continue;
      char byte = 0;
      close(go[1]);
      close(end[1]);
      (void)!read(go[0], &byte, 1);
      auto opened = StatsSocket::Open(path);
      (void)!write(result_[1], opened.ok() ? "y" : "n", 1);
      (void)!read(end[0], &byte, 1);  // Until all have tried, its own is alive.
      _exit(0);
    }
    close(go[1]);
    int opened = 0;
    for (int i = 0; i < 4; ++i) {
      char byte = 0;
      ASSERT_EQ(1, read(result_[0], &byte, 1));
      opened += byte == 'y' ? 1 : 0;
    }
    EXPECT_EQ(1, opened);
    EXPECT_TRUE(Connect(path).valid());
    close(end[1]);
    close(go[0]);
    close(end[0]);
    for (pid_t child : children) waitpid(child, nullptr, 0);
    (void)unlink(path.c_str());
  }
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

// As many as wait until it is looked at; the next are turned away.
TEST_F(StatsSocketTest, ACrowdThatComesAtOnceIsTurnedAway) {
  constexpr size_t kBacklog = 4096;
  Open(UniqueName("at_once"));
  std::vector<OwnedFd> crowd;
  for (size_t i = 0; i < 2 * kBacklog; ++i) {
    OwnedFd one = Connect(socket_->name());
    if (!one.valid()) break;
    crowd.push_back(std::move(one));
  }
  EXPECT_GT(crowd.size(), 0u);
  EXPECT_LE(crowd.size(), kBacklog + 1) << "the kernel lets one more in";
  crowd.clear();
  for (size_t i = 0; i < 2 * kBacklog; ++i) Serve(now_ns_ += StatsSocket::kAcceptNs);
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

// They neither fill the queue nor use up what is served in a while.
TEST_F(StatsSocketTest, OtherUsersKeepNobodyFromAsking) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user to ask as";
  Open(UniqueName("blinded"));
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  const pid_t child = fork();
  if (child == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    std::vector<OwnedFd> crowd;
    for (int i = 0; i < 200; ++i) crowd.push_back(Connect(socket_->name()));
    (void)!write(ends[1], "c", 1);
    _exit(0);
  }
  close(ends[1]);
  char byte = 0;
  const bool asked = read(ends[0], &byte, 1) == 1;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!asked) GTEST_SKIP() << "root can't become another user in this sandbox";
  const OwnedFd client = Connect(socket_->name());
  ASSERT_TRUE(client.valid()) << "the queue is full";
  EXPECT_EQ(*document_, ReadAll(client.get()));
  EXPECT_EQ(1, asked_);
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
