// An eavesdropper on the wire: all packets of a run, of every lane and health socket, in every mode, hold none of the
// messages' 16-byte windows. In a network of the test's own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <iostream>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "common/fd.h"
#include "tests/plugin/encryption/encryption_fixture.h"
#include "tests/support/pattern.h"
#include "tests/support/plugin_mode.h"

namespace tcpx {
namespace {

constexpr size_t kSizes[] = {16, 100, 5000, 70'000, 1'000'000};
constexpr size_t kLongest = 1'000'000;
// An ear that is too slow misses packets.
constexpr size_t kLeastHeard = 20'000;

// Keeps every packet that passes, of all interfaces, until it is stopped.
class Eavesdropper {
 public:
  Eavesdropper() : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
    int room = 512 << 20;
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    if (socket_.valid()) thread_ = std::thread([this] { Run(); });
  }
  ~Eavesdropper() { (void)Stop(); }

  bool hears() const { return socket_.valid(); }
  // All that was heard, one packet after the other.
  const std::string& Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return heard_;
  }

 private:
  void Run() {
    std::vector<char> packet(1 << 17);
    pollfd asked{socket_.get(), POLLIN, 0};
    while (poll(&asked, 1, 20) > 0 || !stop_) {
      const ssize_t got = recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
      if (got > 0) heard_.append(packet.data(), static_cast<size_t>(got));
    }
  }

  OwnedFd socket_;
  std::atomic<bool> stop_{false};
  std::string heard_;
  std::thread thread_;
};

// Blocks of 16 bytes of all messages: any 31 bytes in a row of a message have a whole block.
size_t CountBlocks(const Pattern& pattern, const std::string& heard) {
  std::unordered_set<std::string> blocks;
  for (size_t message = 0; message < std::size(kSizes); ++message) {
    for (size_t at = 0; at + 16 <= kSizes[message]; at += 16) blocks.emplace(pattern.Bytes(message) + at, 16);
  }
  size_t found = 0;
  std::string window;
  for (size_t at = 0; at + 16 <= heard.size(); ++at) {
    window.assign(heard, at, 16);
    found += blocks.count(window);
  }
  return found;
}

class EavesdropperTest : public ::testing::TestWithParam<Mode> {
 protected:
  // What is heard while every message is sent once. Empty: nobody may listen here.
  std::string HeardOf(const Mode& settings) {
    Eavesdropper ear;
    if (!ear.hears()) return "";
    auto plugin = TestPlugin::Open(settings);
    EXPECT_TRUE(plugin.ok()) << plugin.status();
    auto pair = (*plugin)->Connect();
    EXPECT_TRUE(pair.ok()) << pair.status();
    for (size_t message = 0; message < std::size(kSizes); ++message) {
      const std::string text(pattern_.Bytes(message), kSizes[message]);
      EXPECT_EQ(Exchange(&(*plugin)->net(), *pair, {text}), "") << LogText();
    }
    EXPECT_TRUE((*plugin)->Close(*pair).ok());
    EXPECT_TRUE((*plugin)->Finish().ok());
    return ear.Stop();
  }

  const Pattern pattern_{11, kLongest};
};

TEST_P(EavesdropperTest, HearsNothing) {
  const std::string why = GetParam().ReasonToSkip();
  if (!why.empty()) GTEST_SKIP() << why;
  const std::string sealed = HeardOf(Encrypted(GetParam()));
  if (sealed.empty()) GTEST_SKIP() << "packets can't be heard here: no network namespace of the test's own";
  EXPECT_GT(sealed.size(), kLeastHeard);
  EXPECT_EQ(CountBlocks(pattern_, sealed), 0u);
}

TEST_P(EavesdropperTest, HearsAllWithoutEncryption) {
  const std::string why = GetParam().ReasonToSkip();
  if (!why.empty()) GTEST_SKIP() << why;
  const std::string clear = HeardOf(GetParam());
  if (clear.empty()) GTEST_SKIP() << "packets can't be heard here: no network namespace of the test's own";
  EXPECT_GT(CountBlocks(pattern_, clear), kLeastHeard / 16);
}

INSTANTIATE_TEST_SUITE_P(Modes, EavesdropperTest, ::testing::ValuesIn(AllModes({4})), ModeName);

}  // namespace
}  // namespace tcpx
