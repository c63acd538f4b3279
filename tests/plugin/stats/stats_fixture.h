// stats_fixture.h: a connection of the built library to itself, with everything that shows its statistics.
#pragma once

#include <gtest/gtest.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/fd.h"
#include "tests/support/deadline.h"
#include "tests/support/json.h"
#include "tests/support/plugin_test.h"

namespace tcpx {

inline constexpr size_t kSmall = 100;
inline constexpr size_t kLarge = 3 << 20;

// Not valid: nobody listens, or too many ask.
inline OwnedFd ConnectTo(const std::string& name, int flags = SOCK_NONBLOCK) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) fd.reset();
  return fd;
}

// Empty: nobody answers.
inline std::string AskSocket(const std::string& name) {
  const OwnedFd fd = ConnectTo(name, 0);
  std::string text;
  char bytes[65536];
  for (ssize_t got = 0; fd.valid() && (got = read(fd.get(), bytes, sizeof(bytes))) > 0;) {
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

// The parameter: progress threads.
class StatsFixture : public PluginTest, public testing::WithParamInterface<int> {
 protected:
  StatsFixture() {
    std::string name = testing::TempDir() + "/stats.XXXXXX";
    dir_ = mkdtemp(name.data());
    settings_.threads = GetParam();
    settings_.lanes = 3;
    settings_.environment = {
        {"TCPX_STATS", "1"}, {"TCPX_STATS_DIR", dir_}, {"TCPX_STATS_SOCKET", absl::StrCat("@", socket_)}};
    ClearLog();
  }
  void Open() { OpenPair(settings_); }
  void Move(size_t bytes, int times) {
    const std::string text(bytes, 'x');
    for (int i = 0; i < times; ++i) ASSERT_NO_FATAL_FAILURE(PluginTest::Move(pair_, text));
  }

  // What the socket tells once somebody answers.
  Json Ask() {
    Json all;
    for (const Deadline deadline; !deadline.Over(); usleep(50000)) {
      const std::string text = AskSocket(socket_);
      if (text.empty()) continue;  // The thread has just begun.
      std::string error;
      EXPECT_TRUE(ParseJson(text, &all, &error)) << error;
      break;
    }
    return all;
  }

  // Abstract names are the whole machine's, and sandboxes have PIDs of their own.
  const std::string socket_ =
      absl::StrCat("tcpx-stats-test-", std::chrono::steady_clock::now().time_since_epoch().count());
  std::string dir_;
  Mode settings_;
};

}  // namespace tcpx
