#include "bench/netns/wire/control.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace wire {
namespace {

// A socket's name has room for 107 bytes: too few for Bazel's folder.
std::string NameFor(const char* test) { return absl::StrCat("/tmp/wire_control_test.", test, ".", getpid()); }

TEST(Control, AnswersEachLine) {
  const std::string path = NameFor("answers");
  ControlServer server;
  ASSERT_TRUE(server.Listen(path).ok());
  std::atomic<bool> answered{false};
  std::string answer;
  std::thread client([&] {
    answer = Ask(path, "one\ntwo\n").value_or("failed");
    answered = true;
  });
  while (!answered) {
    server.Serve([](absl::string_view line) { return absl::StrCat("heard ", line, "\n"); });
    poll(nullptr, 0, 1);
  }
  client.join();
  EXPECT_EQ(answer, "heard one\nheard two\n");
}

TEST(Control, NameGoesWithTheServer) {
  const std::string path = NameFor("gone");
  {
    ControlServer server;
    ASSERT_TRUE(server.Listen(path).ok());
    EXPECT_EQ(server.fds().size(), 1);
  }
  EXPECT_FALSE(Ask(path, "anybody").ok());
  ControlServer server;
  EXPECT_FALSE(server.Listen(std::string(200, 'x')).ok());
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
