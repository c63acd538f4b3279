// deregMr and close with requests outstanding. NCCL frees a buffer when deregMr has returned and closes the comm only
// afterwards: a plugin that is still reading or writing then corrupts whatever malloc puts there next, long after the
// cause. So fresh pages are mapped at the same addresses, and nobody may touch them; and what is written into them may
// never travel.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

constexpr Stream::Shape kChecked;
constexpr Stream::Shape kUnchecked = {kChecked.message_bytes, kChecked.window, kChecked.count, false};
constexpr Stream::Shape kHuge = {size_t{64} << 20, 1, 1, true};  // more than all buffers of four lanes hold
// Long enough for the peer to send many more messages. By the clock: that nobody touches memory is no event.
constexpr absl::Duration kWhile = absl::Milliseconds(150);

constexpr char kEnough = 'e';
constexpr char kGoOn = 'g';

struct Connected {
  explicit Connected(Control& peer) : ends(rank.Connect(peer)) {}

  Rank rank;
  Ends ends;
};

struct Traffic : Connected, BothWays {
  Traffic(Control& peer, const Stream::Shape& shape) : Connected(peer), BothWays(&rank.net(), ends, shape) {}

  void ReplaceMemory() {
    send.ReplaceMemory(kPoison);
    receive.ReplaceMemory(kFresh);
  }
  void RequireMemoryUntouched() {
    absl::SleepFor(kWhile);
    send.RequireOnly(kPoison);
    receive.RequireOnly(kFresh);
  }
};

void RequireRemoteError(Stream* stream) {
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (stream->Step() == ncclSuccess) TCPX_REQUIRE(absl::Now() < deadline, "no error came");
  TCPX_REQUIRE(stream->Step() == ncclRemoteError, stream->Step());
}

// The peer of the process under test: goes on both ways whatever becomes of one of them, until the other has closed.
void KeepGoing(Control& peer) {
  Traffic traffic(peer, kChecked);
  while (!peer.Rings()) {
    traffic.send.Step();
    traffic.receive.Step();
  }
  peer.Await(kEnough);
  RequireRemoteError(&traffic.send);
  RequireRemoteError(&traffic.receive);
  traffic.Deregister();
  traffic.receive.RequireUnfinishedPlausible();
  traffic.rank.Close(traffic.ends);
  traffic.rank.Finalize();
}

void CloseAndLeave(Control& peer, Traffic* traffic) {
  traffic->rank.Close(traffic->ends);
  traffic->RequireMemoryUntouched();
  TCPX_REQUIRE(WarningCount() == 0, LogText());
  peer.Tell(kEnough);
  traffic->rank.Finalize();
}

class DeregTest : public ModeTest {};

// As after ncclCommAbort: the progress thread has left its loop.
TEST_P(DeregTest, Gotcha08_NothingTouchesMemoryAfterDereg) {
  const auto abort = [](Control& peer) {
    Traffic traffic(peer, kUnchecked);
    traffic.RunFor(64);
    traffic.Deregister();
    traffic.ReplaceMemory();
    traffic.RequireMemoryUntouched();
    CloseAndLeave(peer, &traffic);
  };
  EXPECT_EQ("", RunTogether(abort, KeepGoing));
}

// Releases of NCCL whose progress thread does not look at the abort flag go on testing at the same time as the service
// thread.
TEST_P(DeregTest, NothingTouchesMemoryAfterDeregDuringTests) {
  const auto abort = [](Control& peer) {
    Traffic traffic(peer, kUnchecked);
    traffic.RunFor(32);
    std::atomic<bool> stop{false};
    std::thread progress([&traffic, &stop] {
      while (!stop.load(std::memory_order_relaxed)) {
        traffic.send.Step();
        traffic.receive.Step();
      }
    });
    const int64_t seen = traffic.receive.finished();
    while (traffic.receive.finished() < seen + 16) absl::SleepFor(absl::Milliseconds(1));
    traffic.receive.StopPosting();
    traffic.send.StopPosting();
    traffic.receive.Deregister();
    traffic.send.Deregister();
    traffic.ReplaceMemory();
    traffic.RequireMemoryUntouched();
    stop.store(true, std::memory_order_relaxed);
    progress.join();
    CloseAndLeave(peer, &traffic);
  };
  EXPECT_EQ("", RunTogether(abort, KeepGoing));
}

TEST_P(DeregTest, NothingTouchesMemoryAfterClose) {
  const auto abort = [](Control& peer) {
    Traffic traffic(peer, kUnchecked);
    traffic.RunFor(64);
    traffic.rank.Close(traffic.ends);
    traffic.ReplaceMemory();
    traffic.RequireMemoryUntouched();
    TCPX_REQUIRE(WarningCount() == 0, LogText());
    peer.Tell(kEnough);
    traffic.rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(abort, KeepGoing));
}

TEST_P(DeregTest, CloseStraightAfterDereg) {
  const auto abort = [](Control& peer) {
    Traffic traffic(peer, kUnchecked);
    traffic.RunFor(8);
    traffic.Deregister();
    traffic.rank.Close(traffic.ends);
    traffic.ReplaceMemory();
    traffic.rank.Finalize();
    traffic.RequireMemoryUntouched();
    TCPX_REQUIRE(WarningCount() == 0, LogText());
    peer.Tell(kEnough);
  };
  EXPECT_EQ("", RunTogether(abort, KeepGoing));
}

// What the kernel has queued for a peer that never reads stays there: nothing may wait for it.
TEST_P(DeregTest, PeerThatDoesNotRead) {
  const auto abort = [](Control& peer) {
    Traffic traffic(peer, kUnchecked);
    // No event tells that the kernels hold all they can.
    const absl::Time full = absl::Now() + absl::Milliseconds(300);
    while (absl::Now() < full) {
      TCPX_REQUIRE(traffic.send.Step() == ncclSuccess);
      TCPX_REQUIRE(traffic.receive.Step() == ncclSuccess);
    }
    TCPX_REQUIRE(traffic.send.in_flight() > 0 && traffic.receive.in_flight() > 0);
    traffic.Deregister();
    traffic.ReplaceMemory();
    traffic.RequireMemoryUntouched();
    CloseAndLeave(peer, &traffic);
  };
  const auto deaf = [](Control& peer) {
    Traffic traffic(peer, kChecked);
    peer.Await(kEnough);
    RequireRemoteError(&traffic.receive);
    RequireRemoteError(&traffic.send);
    traffic.Deregister();
    traffic.receive.RequireUnfinishedPlausible();
    traffic.rank.Close(traffic.ends);
    traffic.rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(abort, deaf));
}

// The hardest moment: the plugin, or the kernel on its behalf, waits for the rest of a message with the buffer's
// address in its hand; and the rest comes after deregMr.
TEST_P(DeregTest, RestOfAMessageComesTooLate) {
  constexpr char kPaused = 'p';
  const auto abort = [=](Control& peer) {
    Rank rank;
    const Ends ends = rank.Connect(peer);
    Stream recv(&rank.net(), Stream::Way::kReceive, ends.receive, kHuge);
    peer.Await(kPaused);
    // Nor that nothing more comes.
    const absl::Time drained = absl::Now() + absl::Milliseconds(300);
    while (absl::Now() < drained) TCPX_REQUIRE(recv.Step() == ncclSuccess);
    TCPX_REQUIRE(recv.in_flight() == 1);
    recv.Deregister();
    recv.ReplaceMemory(kFresh);
    peer.Tell(kGoOn);
    absl::SleepFor(kWhile);
    recv.RequireOnly(kFresh);
    rank.Close(ends);
    recv.RequireOnly(kFresh);
    TCPX_REQUIRE(WarningCount() == 0, LogText());
    peer.Tell(kEnough);
    rank.Finalize();
  };
  const auto pause = [=](Control& peer) {
    setenv("TCPX_THREADS", "0", 1);  // It sends only when it is called.
    Rank rank;
    const Ends ends = rank.Connect(peer);
    Stream send(&rank.net(), Stream::Way::kSend, ends.send, kHuge);
    TCPX_REQUIRE(send.Step() == ncclSuccess && send.in_flight() == 1);
    peer.Tell(kPaused);
    peer.Await(kGoOn);
    while (!peer.Rings()) (void)send.Step();
    peer.Await(kEnough);
    RequireRemoteError(&send);
    send.Deregister();
    rank.Close(ends);
    rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(abort, pause));
}

// The end that goes on learns from the log what the other end did, however many lanes there are.
TEST_P(DeregTest, ThePeerNamesTheCause) {
  for (const bool sending : {false, true}) {
    const auto one = [=](Control& peer) {
      Traffic traffic(peer, kHuge);
      Stream& broken = sending ? traffic.send : traffic.receive;
      TCPX_REQUIRE(broken.Step() == ncclSuccess && broken.in_flight() == 1);
      broken.Deregister();  // The peer takes and sends nothing yet: this message can't be over.
      peer.Tell(kGoOn);
      peer.Await(kEnough);
      (sending ? traffic.receive : traffic.send).Deregister();
      traffic.rank.Close(traffic.ends);
      TCPX_REQUIRE(WarningCount() == 0, LogText());
      peer.Tell(kEnough);
      traffic.rank.Finalize();
    };
    const auto other = [=](Control& peer) {
      Traffic traffic(peer, kHuge);
      Stream& broken = sending ? traffic.receive : traffic.send;
      Stream& whole = sending ? traffic.send : traffic.receive;
      peer.Await(kGoOn);
      while (broken.Step() == ncclSuccess) (void)whole.Step();
      RequireRemoteError(&broken);
      TCPX_REQUIRE(LogHas("the peer failed: ") && LogHas("memory was deregistered with"), LogText());
      TCPX_REQUIRE(WarningCount() == 1, LogText());
      peer.Tell(kEnough);
      peer.Await(kEnough);
      traffic.Deregister();
      traffic.rank.Close(traffic.ends);
      traffic.rank.Finalize();
    };
    EXPECT_EQ("", RunTogether(one, other)) << (sending ? "sending" : "receiving");
  }
}

// As NCCL ends in order: with receives outstanding that nobody will send for.
TEST_P(DeregTest, AnOrderlyEndIsSilentOnBothSides) {
  const auto both = [](Control& peer) {
    Stream::Shape sent = kChecked;
    sent.count = 8;
    Rank rank;
    const Ends ends = rank.Connect(peer);
    Stream send(&rank.net(), Stream::Way::kSend, ends.send, sent);
    Stream recv(&rank.net(), Stream::Way::kReceive, ends.receive, kChecked);
    while (!send.complete() || recv.finished() < sent.count) {
      TCPX_REQUIRE(send.Step() == ncclSuccess && recv.Step() == ncclSuccess, LogText());
    }
    peer.Tell(kEnough);
    peer.Await(kEnough);
    TCPX_REQUIRE(recv.in_flight() > 0);
    recv.Deregister();
    send.Deregister();
    absl::SleepFor(kWhile);
    rank.Close(ends);
    rank.Finalize();
    TCPX_REQUIRE(WarningCount() == 0, LogText());
  };
  EXPECT_EQ("", RunTogether(both, both));
}

// User registrations come and go while other requests of the same comm are in flight.
void RegisterAndDeregister(NetClient* net, void* comm, void* data, size_t bytes) {
  void* handle = nullptr;
  TCPX_REQUIRE(net->RegMr(comm, data, bytes, NCCL_PTR_HOST, &handle) == ncclSuccess);
  TCPX_REQUIRE(net->DeregMr(comm, handle) == ncclSuccess);
  TCPX_REQUIRE(net->DeregMr(comm, nullptr) == ncclSuccess);
}

TEST_P(DeregTest, UnrelatedRegionsDisturbNothing) {
  const auto both = [](Control& peer) {
    Stream::Shape shape = kChecked;
    shape.count = 200;
    Traffic traffic(peer, shape);
    std::atomic<bool> stop{false};
    std::thread service([&traffic, &stop] {
      std::vector<char> other(1 << 20);
      while (!stop.load(std::memory_order_relaxed)) {
        RegisterAndDeregister(&traffic.rank.net(), traffic.ends.send, other.data(), other.size());
        RegisterAndDeregister(&traffic.rank.net(), traffic.ends.receive, other.data(), other.size());
        absl::SleepFor(absl::Microseconds(200));
      }
    });
    traffic.Finish();
    stop.store(true, std::memory_order_relaxed);
    service.join();
    traffic.Deregister();
    traffic.rank.Close(traffic.ends);
    traffic.rank.Finalize();
    TCPX_REQUIRE(WarningCount() == 0, LogText());
  };
  EXPECT_EQ("", RunTogether(both, both));
}

// A second registration of memory that is in use under another handle is another region.
TEST_P(DeregTest, SecondHandleOfTheSameMemoryDisturbsNothing) {
  const auto both = [](Control& peer) {
    Stream::Shape shape = kChecked;
    shape.count = 64;
    Rank rank;
    const Ends ends = rank.Connect(peer);
    void* again = nullptr;
    Stream send(&rank.net(), Stream::Way::kSend, ends.send, shape);
    Stream recv(&rank.net(), Stream::Way::kReceive, ends.receive, shape);
    while (!send.complete() || !recv.complete()) {
      TCPX_REQUIRE(rank.net().RegMr(ends.receive, recv.memory(), recv.memory_bytes(), NCCL_PTR_HOST, &again) ==
                   ncclSuccess);
      TCPX_REQUIRE(send.Step() == ncclSuccess && recv.Step() == ncclSuccess, LogText());
      TCPX_REQUIRE(rank.net().DeregMr(ends.receive, again) == ncclSuccess);
    }
    send.Deregister();
    recv.Deregister();
    rank.Close(ends);
    rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(both, both));
}

// One message of `bytes` bytes from `from` to `to`, both of them registered for as long as it takes.
void MoveOnce(Rank* rank, const Ends& ends, char* from, char* to, size_t bytes) {
  NetClient& net = rank->net();
  const auto must = [](ncclResult_t result) { TCPX_REQUIRE(result == ncclSuccess, LogText()); };
  void *data = to, *send_handle = nullptr, *recv_handle = nullptr, *send = nullptr, *recv = nullptr;
  TCPX_REQUIRE(net.RegMr(ends.send, from, bytes, NCCL_PTR_HOST, &send_handle) == ncclSuccess);
  TCPX_REQUIRE(net.RegMr(ends.receive, to, bytes, NCCL_PTR_HOST, &recv_handle) == ncclSuccess);
  int tag = 0, sent = 0, received = 0;
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (sent == 0 || received == 0) {
    if (recv == nullptr) must(net.Irecv(ends.receive, 1, &data, &bytes, &tag, &recv_handle, nullptr, &recv));
    if (send == nullptr) must(net.Isend(ends.send, from, bytes, 0, send_handle, nullptr, &send));
    if (send != nullptr && sent == 0) must(net.Test(send, &sent, nullptr));
    if (recv != nullptr && received == 0) must(net.Test(recv, &received, nullptr));
    TCPX_REQUIRE(absl::Now() < deadline, LogText());
  }
  TCPX_REQUIRE(net.DeregMr(ends.send, send_handle) == ncclSuccess);
  TCPX_REQUIRE(net.DeregMr(ends.receive, recv_handle) == ncclSuccess);
}

// Deregistered with nothing outstanding, freed, mapped anew at the same addresses, registered again: what is there now
// is sent, not what an engine may have kept of before.
TEST_P(DeregTest, MemoryComesBackWithOtherPages) {
  const auto alone = [](Control&) {
    constexpr size_t kBytes = size_t{1} << 20;
    constexpr int kPages = MAP_PRIVATE | MAP_ANONYMOUS;
    Rank rank;
    const Ends ends = rank.ConnectToSelf();
    void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, kPages, -1, 0);
    TCPX_REQUIRE(at != MAP_FAILED);
    char* const from = static_cast<char*>(at);
    std::vector<char> to(kBytes);
    for (int round = 1; round <= 5; ++round) {
      TCPX_REQUIRE(mmap(at, kBytes, PROT_READ | PROT_WRITE, kPages | MAP_FIXED, -1, 0) == at);
      std::fill(from, from + kBytes, static_cast<char>(round));
      MoveOnce(&rank, ends, from, to.data(), kBytes);
      TCPX_REQUIRE(std::count(to.begin(), to.end(), static_cast<char>(round)) == kBytes, "round ", round);
    }
    rank.Close(ends);
    rank.Finalize();
    munmap(at, kBytes);
  };
  EXPECT_EQ("", RunTogether(alone, alone));
}

INSTANTIATE_TEST_SUITE_P(Modes, DeregTest, ::testing::ValuesIn(AllModes({1, 4})), ShortModeName);

}  // namespace
}  // namespace tcpx
