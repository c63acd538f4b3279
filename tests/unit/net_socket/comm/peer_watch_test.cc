// A receiver that floods its sender with records.
#include "net_socket/comm/peer_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net_socket/comm/runtime.h"
#include "net_socket/comm/send_comm.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

std::string Record(FrameKind kind, const std::string& body) {
  FrameHeader header;
  header.kind = kind;
  header.length = static_cast<uint32_t>(body.size());
  std::string frame(kHeaderBytes, ' ');
  EncodeHeader(header, &frame[0]);
  return frame + body;
}

class PeerWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(runtime_.reactor.Start().ok());
    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_));
    peer_ = OwnedFd(fds_[1]);
  }

  void MakeCommInLoop() {
    ConnectionSetup setup;
    setup.runtime = &runtime_;
    setup.lanes.resize(1);
    setup.lanes[0].fd = OwnedFd(fds_[0]);
    comm_ = std::make_unique<SendComm>(std::move(setup));
  }

  // What isend says to an empty message.
  absl::Status Send() {
    Request* request = nullptr;
    return comm_->Send(SendArgs(), &request);
  }

  const Options options_;
  Runtime runtime_{options_};
  int fds_[2];
  OwnedFd peer_;
  std::unique_ptr<SendComm> comm_;
};

// All that had come was once read in one go, and a peer that wrote as fast as it was read kept the reactor for itself.
TEST_F(PeerWatchTest, AFloodDoesNotKeepTheReactor) {
  std::string flood;
  while (flood.size() < 100000) flood += Record(static_cast<FrameKind>(200), std::string(4096, 'x'));
  flood += Record(FrameKind::kError, "enough");
  ASSERT_EQ(static_cast<ssize_t>(flood.size()), send(peer_.get(), flood.data(), flood.size(), MSG_DONTWAIT));
  bool others_ran = false;
  absl::Status then;
  ASSERT_TRUE(runtime_.reactor.RunSync([&] {
    MakeCommInLoop();
    // Runs after the first look at the lane.
    runtime_.reactor.Post([&] {
      then = Send();
      others_ran = true;
    });
  }));
  ASSERT_TRUE(runtime_.reactor.RunSync([] {}));
  ASSERT_TRUE(others_ran);
  EXPECT_TRUE(then.ok()) << "all was read before others had their turn: " << then;
  Deadline deadline;
  while (Send().ok() && deadline.Yield()) {
  }
  EXPECT_EQ("the peer failed: enough", Send().message()) << "what the first look left is read later";
  comm_->Close();
  comm_.reset();
}

// What nobody has read when a lane is to get another socket, or none, is heard nevertheless: forged bytes, and an
// error.
TEST(FrozenLaneTest, ItsLastBytesAreNotPassedOver) {
  struct Nobody final : PeerWatch::Owner {
    void PeerGone(absl::Status, int, bool) override {}
    bool LaneBroke(const absl::Status&, int, bool) override { return false; }
  };
  Reactor reactor;
  ASSERT_TRUE(reactor.Start().ok());
  for (const bool sealed : {true, false}) {
    Nobody nobody;
    auto watch = std::make_unique<PeerWatch>(&nobody, &reactor, 2, 1);
    TcpPair pairs[2] = {MakeTcpPair(), MakeTcpPair()};
    absl::Status told[2];
    reactor.RunSync([&] {
      for (int lane = 0; lane < 2; ++lane) {
        std::unique_ptr<Opener> opener;
        if (sealed) opener = std::make_unique<Opener>(TrafficKeys(), std::make_shared<SealBuffers>());
        watch->WatchInLoop(lane, pairs[lane].a.get(), std::move(opener));
      }
      for (int lane = 0; lane < 2; ++lane) {
        EXPECT_TRUE(watch->FreezeInLoop(lane).ok());
        const std::string forged(100, '\xff');
        EXPECT_TRUE(WriteAll(pairs[lane].b.get(), sealed ? forged : Record(FrameKind::kError, "it broke")));
        told[lane] = watch->FreezeInLoop(lane).status();
      }
    });
    for (const absl::Status& status : told) {
      EXPECT_EQ(status.message(), sealed ? kNotAuthentic : "the peer failed: it broke");
    }
    watch->Stop();
    reactor.RunSync([&] { watch = nullptr; });
  }
  reactor.RequestStop();
  reactor.Join();
}

// Between records nobody can tell who has ended it; within one it was no peer that lives.
TEST(CutRecordTest, IsNoEndOfThePeers) {
  struct Hears final : PeerWatch::Owner {
    void PeerGone(absl::Status status, int, bool in_order) override {
      told = std::move(status);
      ended_in_order = in_order;
      heard = true;
    }
    bool LaneBroke(const absl::Status&, int, bool) override { return false; }
    absl::Status told;
    bool ended_in_order = false;
    std::atomic<bool> heard{false};
  };
  Reactor reactor;
  ASSERT_TRUE(reactor.Start().ok());
  for (const bool cut : {true, false}) {
    Hears owner;
    auto watch = std::make_unique<PeerWatch>(&owner, &reactor, 1, 1);
    TcpPair pair = MakeTcpPair();
    reactor.RunSync([&] {
      auto opener = std::make_unique<Opener>(TrafficKeys(), std::make_shared<SealBuffers>());
      watch->WatchInLoop(0, pair.a.get(), std::move(opener));
    });
    const std::string length("\x64\0\0\0", kSealedHeaderBytes);
    EXPECT_TRUE(WriteAll(pair.b.get(), cut ? length + std::string(20, 'x') : ""));
    pair.b = OwnedFd();
    const Deadline deadline;
    while (!owner.heard && deadline.Yield()) {
    }
    EXPECT_EQ(owner.told.message(), cut ? kCutRecord : "the peer closed the connection");
    EXPECT_EQ(owner.ended_in_order, !cut);
    watch->Stop();
    reactor.RunSync([&] { watch = nullptr; });
  }
  reactor.RequestStop();
  reactor.Join();
}

// The reactor and the calling thread may find it out at once; the thread sanitizer watches.
TEST(PeerLossTest, TheFirstOfTwoThreadsIsKept) {
  for (int round = 0; round < 2000; ++round) {
    PeerLoss loss;
    std::atomic<int> ready{0};
    const auto meet = [&ready] {
      ready.fetch_add(1, std::memory_order_relaxed);
      for (int spins = 0; ready.load(std::memory_order_relaxed) < 2; ++spins) {
        if (spins > 10000) std::this_thread::yield();
      }
    };
    std::thread other([&loss, &meet] {
      meet();
      loss.Note(absl::UnavailableError("found by the other thread"), 1);
    });
    meet();
    loss.Note(absl::UnavailableError("found by this thread, the caller's"), 2);
    while (!loss.known()) std::this_thread::yield();
    const std::string first(loss.status().message());
    EXPECT_EQ(loss.lane() == 1 ? "found by the other thread" : "found by this thread, the caller's", first);
    other.join();
    EXPECT_EQ(first, loss.status().message());
  }
}

}  // namespace
}  // namespace tcpx
