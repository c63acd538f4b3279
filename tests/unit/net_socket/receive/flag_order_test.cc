// NCCL's LL and LL128 receivers read the buffer while it is written. A stream is cut at every byte; whatever staging a
// lane has, no line ever shows its flag before its data.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "common/payload/flag_lines.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/receive/lane_stage.h"
#include "net_socket/receive/receive_lane.h"
#include "tests/support/deadline.h"
#include "tests/support/seed.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

constexpr size_t kBytesMax = 32 * 1024;

// Stands for the GPU: looks at one buffer, message after message.
class Poller {
 public:
  explicit Poller(LineKind kind) : kind_(kind), thread_([this] { Run(); }) {}
  ~Poller() {
    stop_.store(true);
    thread_.join();
  }

  char* buffer() { return reinterpret_cast<char*>(buffer_); }
  bool Holds(const iovec& place) const {
    const char* const begin = reinterpret_cast<const char*>(buffer_);
    const char* const at = static_cast<const char*>(place.iov_base);
    return at >= begin && at < begin + kBytesMax;
  }
  // Looks for the lines of `message` from now on.
  void Expect(uint64_t message, size_t bytes) {
    bytes_.store(bytes);
    expected_.store(message);
  }
  bool Saw(uint64_t message) const { return seen_.load() == message; }
  bool wrong() const { return wrong_.load(); }

 private:
  void Run() {
    while (!stop_.load()) {
      const uint64_t message = expected_.load();
      if (message == seen_.load()) {
        sched_yield();
        continue;
      }
      size_t line = 0;
      Seen seen = Seen::kNotYet;
      while (seen == Seen::kNotYet && !stop_.load()) {
        // From the end backwards too: a late line that shows must not come before the earlier ones.
        if (LaterLineShows(message)) line = 0;
        seen = PollLines(kind_, message, buffer_, bytes_.load(), &line);
      }
      if (seen == Seen::kWrong) wrong_.store(true);
      seen_.store(message);
    }
  }

  // Fails when the last line shows its flag and any line before it does not.
  bool LaterLineShows(uint64_t message) {
#if !defined(__x86_64__)
    if (kind_ == LineKind::kLl) return false;  // Its lines are words, in no order among each other.
#endif
    const size_t lines = bytes_.load() / LineBytes(kind_);
    size_t last = lines - 1;
    if (PollLines(kind_, message, buffer_, bytes_.load(), &last) == Seen::kNotYet) return false;
    size_t line = 0;
    if (PollLines(kind_, message, buffer_, bytes_.load(), &line) != Seen::kAll) wrong_.store(true);
    return true;
  }

  const LineKind kind_;
  alignas(128) uint64_t buffer_[kBytesMax / 8] = {};  // as NCCL's: forward_copy.h
  std::atomic<size_t> bytes_{0};
  std::atomic<uint64_t> expected_{0};
  std::atomic<uint64_t> seen_{0};
  std::atomic<bool> wrong_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The lane's staging: borrowed for each read, borrowed for such data alone, or the few bytes of the lane itself.
enum class Staging { kAlways, kForFlagLines, kNone };

class FlagOrderTest : public ::testing::TestWithParam<std::tuple<LineKind, Staging>> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the race is the point here, and the thread sanitizer would report it";
#endif
    sockets_ = MakeTcpPair();
  }

  LineKind kind() const { return std::get<0>(GetParam()); }
  Staging staging() const { return std::get<1>(GetParam()); }
  StagePool* pool() { return staging() == Staging::kNone ? nullptr : &stages_; }
  ReceiveLane::Borrows borrows() const {
    return staging() == Staging::kForFlagLines ? ReceiveLane::Borrows::kForFlagLines : ReceiveLane::Borrows::kAlways;
  }

  // A message of `bytes` in pieces that end at `cuts` (of header and payload), each read before the next is written.
  void Send(Poller* poller, ReceiveLane* lane, size_t bytes, const std::vector<size_t>& cuts) {
    FrameHeader header;
    header.sequence = table_.posted();
    header.length = static_cast<uint32_t>(bytes);
    header.message_bytes = bytes;
    const uint64_t flag = header.sequence + 1;
    std::string frame(kHeaderBytes + bytes, ' ');
    EncodeHeader(header, &frame[0]);
    std::vector<uint64_t> lines(bytes / 8);
    FillLines(kind(), flag, lines.data(), bytes);
    frame.replace(kHeaderBytes, bytes, reinterpret_cast<const char*>(lines.data()), bytes);

    poller->Expect(flag, bytes);
    PayloadRoute way;
    way.flag_lines = true;
    PostedReceive* receive = table_.Post(poller->buffer(), bytes, 0, nullptr, way);
    size_t begin = 0;
    for (const size_t cut : cuts) {
      Deliver(*poller, lane, frame.substr(begin, cut - begin));
      begin = cut;
    }
    Deliver(*poller, lane, frame.substr(begin));
    EXPECT_TRUE(receive->done.load());
    receive->in_use = false;
    Deadline deadline;
    while (!poller->Saw(flag) && !poller->wrong()) ASSERT_TRUE(deadline.Yield());
    ASSERT_FALSE(poller->wrong()) << "message " << header.sequence << " of " << bytes << " bytes, first cut at "
                                  << (cuts.empty() ? 0 : cuts[0]);
  }

  void Deliver(const Poller& poller, ReceiveLane* lane, const std::string& piece) {
    ASSERT_TRUE(WriteAll(sockets_.a.get(), piece));
    Deadline deadline;
    for (size_t read = 0; read < piece.size();) {
      iovec iov[ReceiveLane::kIovMax];
      msghdr message{};
      message.msg_iov = iov;
      message.msg_iovlen = static_cast<size_t>(lane->Prepare(iov));
      ASSERT_LT(0u, message.msg_iovlen) << lane->status();
      for (size_t i = 0; i < message.msg_iovlen; ++i) ASSERT_FALSE(poller.Holds(iov[i])) << "the kernel writes it";
      const ssize_t got = recvmsg(sockets_.b.get(), &message, MSG_DONTWAIT);
      if (got < 0) {
        ASSERT_TRUE(errno == EAGAIN && deadline.Yield());
        continue;
      }
      lane->Advance(static_cast<size_t>(got));
      read += static_cast<size_t>(got);
    }
  }

  TcpPair sockets_;
  PostedReceiveTable table_{32};
  StagePool stages_;
};

TEST_P(FlagOrderTest, CutAtEveryByte) {
  // Not on the stack, whose frames under the address sanitizer keep no alignment of 128.
  const auto owned = std::make_unique<Poller>(kind());
  Poller& poller = *owned;
  ReceiveLane lane(&table_, pool(), 0, borrows());
  const size_t bytes = kind() == LineKind::kLl ? 40 * 8 : 5 * 128;
  const int rounds = std::max(1, 5 / TimeScale());
  for (int round = 0; round < rounds; ++round) {
    for (size_t cut = 1; cut < kHeaderBytes + bytes && !HasFatalFailure(); ++cut) Send(&poller, &lane, bytes, {cut});
  }
}

TEST_P(FlagOrderTest, LongMessagesInManyPieces) {
  Rng rng(TestSeed());
  const auto owned = std::make_unique<Poller>(kind());
  Poller& poller = *owned;
  ReceiveLane lane(&table_, pool(), 0, borrows());
  for (int i = 0; i < 2000 / TimeScale() && !HasFatalFailure(); ++i) {
    const size_t bytes = rng.Between(1, kBytesMax / 128) * 128;
    std::vector<size_t> cuts;
    for (uint64_t n = rng.Between(0, 5); n > 0; --n) cuts.push_back(rng.Between(1, kHeaderBytes + bytes - 1));
    std::sort(cuts.begin(), cuts.end());
    Send(&poller, &lane, bytes, cuts);
  }
}

std::string WayName(const ::testing::TestParamInfo<FlagOrderTest::ParamType>& info) {
  const char* const names[] = {"Staged", "StagedForFlagLines", "Unstaged"};
  return std::string(LineKindName(std::get<0>(info.param))) + names[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(EveryWay, FlagOrderTest,
                         ::testing::Combine(::testing::Values(LineKind::kLl, LineKind::kLl128),
                                            ::testing::Values(Staging::kAlways, Staging::kForFlagLines,
                                                              Staging::kNone)),
                         WayName);

}  // namespace
}  // namespace tcpx
