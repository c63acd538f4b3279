#include "bench/net_bench/mixed_run.h"

#include <string.h>

#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

constexpr size_t kPing = 16;
constexpr size_t kStream = 4096;

// One direction of one connection between two threads. Closed: nobody waits for more.
struct Pipe {
  std::mutex mutex;
  std::deque<std::vector<uint8_t>> messages;
  int passed = 0;
  bool closed = false;
};

class PipeEnd : public Channel {
 public:
  PipeEnd(Pipe* pipe, bool sends) : pipe_(pipe), sends_(sends) {}

  Step Post(uint8_t* data, size_t bytes) override {
    const std::lock_guard<std::mutex> lock(pipe_->mutex);
    if (sends_) pipe_->messages.emplace_back(data, data + bytes);
    posted_.push_back({data, bytes});
    return Step::kDone;
  }
  Step Test(size_t* bytes) override {
    const std::lock_guard<std::mutex> lock(pipe_->mutex);
    if (pipe_->closed) return Step::kFailed;
    *bytes = posted_.front().bytes;
    if (!sends_) {
      if (pipe_->messages.empty()) return Step::kAgain;
      *bytes = pipe_->messages.front().size();
      memcpy(posted_.front().data, pipe_->messages.front().data(), *bytes);
      if (pipe_->passed == corrupt_at) posted_.front().data[0] ^= 0x40;
      pipe_->messages.pop_front();
      ++pipe_->passed;
    }
    posted_.pop_front();
    return Step::kDone;
  }
  std::string Failure() const override { return "closed"; }

  int corrupt_at = -1;

 private:
  struct Posted {
    uint8_t* data;
    size_t bytes;
  };
  Pipe* const pipe_;
  const bool sends_;
  std::deque<Posted> posted_;
};

class EndLink : public Link {
 public:
  EndLink(Pipe* out, Pipe* in) {
    for (int connection = 0; connection < 2; ++connection) {
      ends_.push_back(std::make_unique<PipeEnd>(out + connection, true));
      sends_.push_back(ends_.back().get());
      ends_.push_back(std::make_unique<PipeEnd>(in + connection, false));
      receives_.push_back(ends_.back().get());
    }
  }
  const std::vector<Channel*>& sends() const override { return sends_; }
  const std::vector<Channel*>& receives() const override { return receives_; }
  PipeEnd* ping_receive() { return ends_[1].get(); }

 private:
  std::vector<std::unique_ptr<PipeEnd>> ends_;
  std::vector<Channel*> sends_;
  std::vector<Channel*> receives_;
};

class MixedRunTest : public testing::Test {
 protected:
  absl::Status RunRank(int rank, MixedResult* result) {
    SlotRing::Shape shape;
    shape.regions = 2;
    shape.slots = 4;
    shape.bytes_max = kStream;
    const std::unique_ptr<SlotRing> send = *SlotRing::Create(shape);
    const std::unique_ptr<SlotRing> receive = *SlotRing::Create(shape);
    send->Layout(kStream);
    receive->Layout(kStream);
    MixedOrder order;
    order.ping_bytes = kPing;
    order.stream_bytes = kStream;
    order.window = 4;
    order.messages = 2000;
    order.warmup = 20;
    order.yield = true;
    order.rank = rank;
    Position position;
    return MixedRun(order, &links_[rank], send.get(), receive.get(), &position).Run(result);
  }
  void CloseAll() {
    for (auto& way : pipes_) {
      for (Pipe& pipe : way) {
        const std::lock_guard<std::mutex> lock(pipe.mutex);
        pipe.closed = true;
      }
    }
  }

  Pipe pipes_[2][2];  // [rank that sends][connection]
  EndLink links_[2] = {EndLink(pipes_[0], pipes_[1]), EndLink(pipes_[1], pipes_[0])};
};

TEST_F(MixedRunTest, PingsGoOnAsLongAsTheStream) {
  MixedResult results[2];
  absl::Status echo;
  std::thread peer([&] { echo = RunRank(1, &results[1]); });
  const absl::Status asker = RunRank(0, &results[0]);
  peer.join();
  EXPECT_TRUE(asker.ok()) << asker;
  EXPECT_TRUE(echo.ok()) << echo;
  EXPECT_EQ(pipes_[0][1].passed, 2000);
  EXPECT_EQ(pipes_[1][1].passed, 0) << "the stream goes one way";
  EXPECT_EQ(pipes_[0][0].passed, pipes_[1][0].passed) << "every ping has its answer";
  EXPECT_GT(results[1].elapsed_ns, 0);
  EXPECT_TRUE(results[1].gaps_ns.empty());
  EXPECT_LT(results[0].gaps_ns.size(), static_cast<size_t>(pipes_[0][0].passed));
}

TEST_F(MixedRunTest, WrongAnswerIsDataLoss) {
  links_[0].ping_receive()->corrupt_at = 0;
  MixedResult results[2];
  absl::Status echo;
  std::thread peer([&] { echo = RunRank(1, &results[1]); });
  const absl::Status asker = RunRank(0, &results[0]);
  CloseAll();
  peer.join();
  EXPECT_EQ(asker.code(), absl::StatusCode::kDataLoss) << asker;
}

TEST_F(MixedRunTest, FailureOfAChannelEndsTheRun) {
  CloseAll();
  MixedResult result;
  const absl::Status status = RunRank(0, &result);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_NE(status.message().find("closed"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
