// health_pair.h: both ends of a health socket, and who listens there.
//
// Threads: as gtest; a listener is called in the reactor.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/clock.h"
#include "net_socket/health/health_hub.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/health/health_records.h"

namespace tcpx {

inline constexpr int64_t kTimeout = 30 * kSecond;

// A comm that notes what it hears.
class Listener final : public HealthUser {
 public:
  ~Listener() { tie_.Cut(); }
  Link<HealthUser> link() { return tie_.To<HealthUser>(this); }
  void Cut() { tie_.Cut(); }

  void PeerLost(const absl::Status& how) override { Note(how.ok() ? "ended" : "died: " + std::string(how.message())); }
  void PeerFailed(const std::string& cause, bool parting) override {
    Note((parting ? "parted: " : "failed: ") + cause);
  }
  void PeerLeft(const std::vector<uint64_t>& taken) override {
    Note(absl::StrCat("left", taken.empty() ? "" : " at ", absl::StrJoin(taken, ",")));
  }

  void PeerIsUnheard(int) override {}
  void PeerSaysWaits(const std::string& news) override { Note("waits: " + news); }
  bool HealthLost() override { return known; }
  bool HealthBack(bool) override { return known; }

  // What acts on these, acts on the latest.
  int64_t LanesGoneNs(bool* in_order) override {
    ++asked;
    if (!gone) return 0;
    *in_order = true;
    return 3600 * kSecond;
  }
  bool HeardWithin(int64_t) override { return heard; }
  bool AnyLaneUp(bool) override { return up; }
  std::atomic<bool> up{false};
  std::atomic<int> asked{0};
  std::atomic<bool> gone{false};
  std::atomic<bool> heard{false};
  std::atomic<bool> known{true};

  std::string Text() {
    std::lock_guard<std::mutex> lock(mutex_);
    return text_;
  }
  bool Hears(const std::string& text) {
    Deadline deadline;
    while (!absl::StrContains(Text(), text)) {
      if (!deadline.Yield()) return false;
    }
    return true;
  }

 private:
  void Note(const std::string& text) {
    std::lock_guard<std::mutex> lock(mutex_);
    text_ += text + ";";
  }
  Tie tie_;
  std::mutex mutex_;
  std::string text_;
};

// Two hubs in one reactor, and a socket between them.
class HealthTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reactor_.Start().ok());
    TcpPair pair = MakeTcpPair(0);
    reactor_.RunSync([&] {
      near_ = near_hub_.UseDialledInLoop(0, SocketAddress());
      near_->UpInLoop(std::move(pair.a), {kTimeout});
      far_hub_.AcceptInLoop(7, std::move(pair.b), {kTimeout});
      far_ = far_hub_.FindAcceptedInLoop(7);
      near_->JoinInLoop(Id(1), near_comm_.link());
      near_->UnuseInLoop();  // the dial's own use
      far_->JoinInLoop(Id(1), far_comm_.link());
    });
  }
  void TearDown() override {
    reactor_.RunSync([&] {
      near_hub_.CloseInLoop();
      far_hub_.CloseInLoop();
    });
    reactor_.RequestStop();
    reactor_.Join();
  }

  Reactor reactor_;
  HealthHub near_hub_{&reactor_};
  HealthHub far_hub_{&reactor_};
  std::shared_ptr<HealthPeer> near_;
  std::shared_ptr<HealthPeer> far_;
  Listener near_comm_;
  Listener far_comm_;
};

}  // namespace tcpx
