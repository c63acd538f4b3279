// What is said of an accept that finds nothing, and when it is given up, with bounds of milliseconds.
#include "net_socket/connect/accept_watch.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net_socket/message/wire.h"
#include "tests/support/deadline.h"
#include "tests/support/kept_log.h"

namespace tcpx {
namespace {

SocketAddress Address(const std::string& text) { return *SocketAddress::Parse(text); }

const SocketAddress kPeer = Address("10.0.0.2:39000");
constexpr int64_t kNever = 1000 * kSecond;

class AcceptWatchTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().ok()); }
  void TearDown() override {
    reactor_.RunSync([this] { watch_->CloseInLoop(); });
    reactor_.RequestStop();
    reactor_.Join();
  }

  void Make(int64_t incomplete_ns, int64_t lost_ns) {
    AcceptBounds bounds;
    bounds.no_progress_ns = 30 * kMillisecond;
    bounds.incomplete_ns = incomplete_ns;
    bounds.lost_ns = lost_ns;
    watch_ = std::make_unique<AcceptWatch>(
        &reactor_, bounds, [this](const AcceptWait&) { return partial_; }, [this] { return local_; });
  }
  std::shared_ptr<AcceptWait> NewWait(const std::string& address = "10.0.0.1:4410") {
    auto communicator = std::make_shared<Communicator>();
    communicator->group = group_;
    auto wait = std::make_shared<AcceptWait>();
    wait->communicator = communicator;
    wait->addresses = {Address(address)};
    wait->where = address + " (eth0)";
    return wait;
  }
  std::vector<std::string> Lines() { return log_.Lines(); }
  // As NCCL does it, until the condition holds.
  template <typename Condition>
  void AskUntil(const std::vector<std::shared_ptr<AcceptWait>>& waits, Condition condition) {
    const Deadline deadline;
    while (!condition() && deadline.Yield()) {
      for (const auto& wait : waits) watch_->Waits(wait);
    }
    ASSERT_TRUE(condition());
  }
  void AskFor(const std::shared_ptr<AcceptWait>& wait, int64_t ns) {
    for (const int64_t end = MonotonicNanos() + ns; MonotonicNanos() < end; std::this_thread::yield()) {
      watch_->Waits(wait);
    }
  }
  bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  KeptLog log_;
  Reactor reactor_;
  std::unique_ptr<AcceptWatch> watch_;
  std::shared_ptr<FailureGroup> group_ = std::make_shared<FailureGroup>();
  // Written before anything is watched, or in the reactor.
  std::optional<AcceptWatch::Partial> partial_;
  std::vector<SocketAddress> local_ = {Address("127.0.0.1"), Address("10.0.0.1")};
};

TEST_F(AcceptWatchTest, WhereNobodyComesIsSaidOnceHoweverManyWait) {
  Make(kNever, kNever);
  const std::vector<std::shared_ptr<AcceptWait>> waits = {NewWait(), NewWait(), NewWait()};
  AskUntil(waits, [&] { return !Lines().empty(); });
  AskFor(waits[0], 100 * kMillisecond);
  ASSERT_EQ(1u, Lines().size());
  for (const char* part : {"accept on 10.0.0.1:4410 (eth0): no peer has come for 0.03 s", "may be late", "firewall",
                           "NAT", "TCPX_PORT_RANGE"}) {
    EXPECT_TRUE(Has(Lines()[0], part)) << part << " is missing in " << Lines()[0];
  }
  // Merely late: no error, for ever.
  for (const auto& wait : waits) EXPECT_TRUE(AcceptWatch::Failure(wait.get()).ok());
  EXPECT_EQ("", group_->cause());
  // That somebody has come in part is news.
  reactor_.RunSync([this] { partial_ = AcceptWatch::Partial{Address("10.0.0.2:39000"), 1, 4}; });
  AskUntil({waits[0]}, [&] { return Lines().size() == 2; });
  EXPECT_TRUE(Has(Lines()[1], "1 of 4 lanes from 10.0.0.2:39000 have come")) << Lines()[1];
}

TEST_F(AcceptWatchTest, WhatHasComeOfAConnection) {
  Make(kNever, kNever);
  partial_ = AcceptWatch::Partial{Address("10.0.0.2:39000"), 2, 4};
  const auto wait = NewWait(), other = NewWait("10.0.0.1:4411");
  AskUntil({wait}, [&] { return Lines().size() == 1; });
  EXPECT_TRUE(Has(Lines()[0], "2 of 4 lanes from 10.0.0.2:39000 have come, and no more")) << Lines()[0];
  reactor_.RunSync([this] { partial_->present = 4; });
  AskUntil({other}, [&] { return Lines().size() == 2; });
  EXPECT_TRUE(Has(Lines()[1], "all 4 lanes from 10.0.0.2:39000 have come, and no health socket")) << Lines()[1];
  reactor_.RunSync([this] { partial_->whole = true; });
  const auto third = NewWait("10.0.0.1:4412");
  AskUntil({third}, [&] { return Lines().size() == 3; });
  EXPECT_TRUE(Has(Lines()[2], "all 4 lanes from 10.0.0.2:39000 have come, and the dialler has not said")) << Lines()[2];
  reactor_.RunSync([this] { partial_ = AcceptWatch::Partial{Address("10.0.0.2:39000"), 1, 1}; });
  const auto fourth = NewWait("10.0.0.1:4413");
  AskUntil({fourth}, [&] { return Lines().size() == 4; });
  EXPECT_TRUE(Has(Lines()[3], "the only lane from 10.0.0.2:39000 has come, and no health socket")) << Lines()[3];
}

TEST_F(AcceptWatchTest, LanesThatCameAndWereClosedAreNotForgotten) {
  Make(kNever, kNever);
  const auto wait = NewWait();
  reactor_.RunSync([&] { watch_->CameInLoop(wait.get(), kPeer, false); });
  AskUntil({wait}, [&] { return !Lines().empty(); });
  EXPECT_TRUE(Has(Lines()[0], "lanes from 10.0.0.2:39000 have come, never all of a connection, and no more for 0.03 s"))
      << Lines()[0];
}

TEST_F(AcceptWatchTest, NothingIsSaidWhileLanesComeOrNobodyAsks) {
  Make(kNever, kNever);
  const auto wait = NewWait();
  watch_->Waits(wait);
  // Three times what it waits before it speaks. The reactor keeps the real time, and silence is no event.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(Lines().empty()) << "accept was called once and then no more";
  const auto busy = NewWait();
  Reactor::TimerId timer;
  // In the reactor, so that the look can't come between for longer than a period.
  std::function<void()> come = [&] {
    watch_->CameInLoop(busy.get(), kPeer, false);
    timer = reactor_.AddTimerInLoop(MonotonicNanos() + kMillisecond, come);
  };
  reactor_.RunSync(come);
  AskFor(busy, 150 * kMillisecond);
  reactor_.RunSync([&] { reactor_.CancelTimerInLoop(timer); });
  EXPECT_TRUE(Lines().empty()) << Lines()[0];
}

TEST_F(AcceptWatchTest, ADiallersWordIsNotAwaitedForEver) {
  Make(50 * kMillisecond, kNever);
  partial_ = AcceptWatch::Partial{Address("10.0.0.2:39000"), 4, 4, true};
  const auto wait = NewWait();
  reactor_.RunSync([&] { watch_->CameInLoop(wait.get(), kPeer, false); });
  AskUntil({wait}, [&] { return !AcceptWatch::Failure(wait.get()).ok(); });
  const std::string failure(AcceptWatch::Failure(wait.get()).message());
  EXPECT_TRUE(Has(failure, "but their dialler never said that it has every answer: given up after")) << failure;
}

TEST_F(AcceptWatchTest, TheRestOfAConnectionIsNotAwaitedForEver) {
  Make(50 * kMillisecond, kNever);
  partial_ = AcceptWatch::Partial{Address("10.0.0.2:39000"), 1, 4};
  const auto wait = NewWait();
  reactor_.RunSync([&] { watch_->CameInLoop(wait.get(), kPeer, false); });
  AskUntil({wait}, [&] { return !AcceptWatch::Failure(wait.get()).ok(); });
  const std::string failure(AcceptWatch::Failure(wait.get()).message());
  EXPECT_TRUE(Has(failure, "from 10.0.0.2:39000, but never all of a connection: given up after")) << failure;
  EXPECT_EQ(failure.substr(0, kCauseBytesMax), group_->cause()) << "all of the communicator fails";
  EXPECT_TRUE(Has(Lines().back(), failure)) << Lines().back();
}

TEST_F(AcceptWatchTest, AWholeConnectionEndsTheWaitForItsRest) {
  Make(50 * kMillisecond, kNever);
  const auto wait = NewWait();
  reactor_.RunSync([&] {
    watch_->CameInLoop(wait.get(), kPeer, false);
    watch_->CameInLoop(wait.get(), kPeer, true);
  });
  AskFor(wait, 200 * kMillisecond);
  EXPECT_TRUE(AcceptWatch::Failure(wait.get()).ok());
}

TEST_F(AcceptWatchTest, AnAddressThatThisHostHasLost) {
  local_ = {Address("127.0.0.1"), Address("10.0.0.9")};
  Make(kNever, 100 * kMillisecond);
  const auto wait = NewWait();
  AskUntil({wait}, [&] { return !Lines().empty(); });
  EXPECT_TRUE(Has(Lines()[0], "this host has lost the address")) << Lines()[0];
  AskUntil({wait}, [&] { return !AcceptWatch::Failure(wait.get()).ok(); });
  EXPECT_NE("", group_->cause());
}

TEST_F(AcceptWatchTest, AnAddressThatComesBackInTime) {
  local_ = {Address("127.0.0.1")};
  Make(kNever, 2 * kSecond);
  const auto wait = NewWait();
  AskUntil({wait}, [&] { return !Lines().empty(); });
  reactor_.RunSync([this] { local_.push_back(Address("10.0.0.1")); });
  AskUntil({wait}, [&] {
    bool back = false;
    reactor_.RunSync([&] { back = wait->lost_ns == 0; });
    return back;
  });
  EXPECT_TRUE(AcceptWatch::Failure(wait.get()).ok());
}

// The other connections have said why.
TEST_F(AcceptWatchTest, AFailedCommunicatorSaysNoMore) {
  Make(kNever, kNever);
  group_->Claim("a cable is out");
  AskFor(NewWait(), 120 * kMillisecond);
  EXPECT_TRUE(Lines().empty());
}

}  // namespace
}  // namespace tcpx
