#include "tests/support/flag_traffic.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/payload/flag_lines.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

struct FlagMessage {
  LineKind kind;
  size_t bytes;
  uint64_t flag;
};

std::vector<FlagMessage> Messages(uint64_t seed, size_t count) {
  Rng rng(seed);
  std::vector<FlagMessage> messages;
  // Kinds change rarely: each takes the memory over from the other.
  for (size_t i = 0; i < count; ++i) {
    const LineKind kind = i * 2 < count ? LineKind::kLl : LineKind::kLl128;
    const size_t line = LineBytes(kind);
    const size_t bytes_max = kind == LineKind::kLl ? 64 << 10 : rng.OneIn(4) ? kFlagSlotBytes : 96 << 10;
    messages.push_back({kind, rng.Between(1, bytes_max / line) * line, i + 1});
  }
  return messages;
}

class GpuThread {
 public:
  GpuThread(const std::vector<FlagMessage>* messages, const std::array<const void*, kFlagSlots>& views)
      : messages_(messages), views_(views), thread_([this] { Run(); }) {}
  ~GpuThread() {
    stop_.store(true);
    thread_.join();
  }

  size_t consumed() const { return consumed_.load(std::memory_order_acquire); }
  bool wrong() const { return wrong_.load(); }

 private:
  void Run() {
    for (size_t i = 0; i < messages_->size(); ++i) {
      const FlagMessage& message = (*messages_)[i];
      size_t line = 0;
      Seen seen = Seen::kNotYet;
      while (seen == Seen::kNotYet) {
        if (stop_.load(std::memory_order_relaxed)) return;
        seen = PollLines(message.kind, message.flag, views_[i % kFlagSlots], message.bytes, &line);
        if (seen == Seen::kNotYet) sched_yield();
      }
      wrong_.store(seen == Seen::kWrong);
      if (wrong_.load()) return;
      consumed_.store(i + 1, std::memory_order_release);
    }
  }

  const std::vector<FlagMessage>* const messages_;
  const std::array<const void*, kFlagSlots> views_;
  std::atomic<size_t> consumed_{0};
  std::atomic<bool> wrong_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The two sides of the connection, each with its requests, oldest first.
class Driver {
 public:
  Driver(const FlagTraffic& traffic, const std::vector<FlagMessage>* messages)
      : traffic_(traffic), messages_(messages), out_(kFlagSlots, std::vector<uint64_t>(kFlagSlotBytes / 8)) {}

  bool idle() const { return sends_.empty() && receives_.empty(); }
  // Moves what can be moved; false when nothing did. `*error` gets the first failure.
  bool Step(size_t consumed, std::string* error) {
    bool moved = false;
    if (sent_ < messages_->size() && sends_.size() < kFlagSlots) {
      const FlagMessage& message = (*messages_)[sent_];
      void* const data = out_[sent_ % kFlagSlots].data();
      FillLines(message.kind, message.flag, data, message.bytes);
      void* request = nullptr;
      Check("isend", traffic_.send(data, message.bytes, &request), error);
      if (request != nullptr) sends_.push_back(request), ++sent_, moved = true;
    }
    if (posted_ < messages_->size() && posted_ < consumed + kFlagSlots) {
      void* request = nullptr;
      Check("irecv", traffic_.receive(posted_ % kFlagSlots, &request), error);
      if (request != nullptr) receives_.push_back(request), ++posted_, moved = true;
    }
    for (std::deque<void*>* requests : {&sends_, &receives_}) {
      if (requests->empty()) continue;
      int done = 0;
      Check("test", traffic_.test(requests->front(), &done), error);
      if (done != 0) requests->pop_front(), moved = true;
    }
    return moved;
  }
  std::string Where() const { return absl::StrCat(sent_, " sent, ", posted_, " posted"); }

 private:
  static void Check(const char* call, ncclResult_t result, std::string* error) {
    if (result != ncclSuccess && error->empty()) *error = absl::StrCat(call, ": ", result, "\n", LogText());
  }

  const FlagTraffic& traffic_;
  const std::vector<FlagMessage>* const messages_;
  std::vector<std::vector<uint64_t>> out_;
  std::deque<void*> sends_, receives_;
  size_t sent_ = 0, posted_ = 0;
};

}  // namespace

std::string RunFlagTraffic(const FlagTraffic& traffic) {
  const std::vector<FlagMessage> messages = Messages(traffic.seed, traffic.messages);
  GpuThread gpu(&messages, traffic.views);
  Driver driver(traffic, &messages);
  std::string error;
  Deadline deadline;
  while (gpu.consumed() < messages.size() || !driver.idle()) {
    if (gpu.wrong()) return absl::StrCat("message ", gpu.consumed(), ": a line showed its flag before its data");
    const bool moved = driver.Step(gpu.consumed(), &error);
    if (!error.empty()) return error;
    if (moved) deadline.Restart();
    if (!moved && !deadline.Yield()) return absl::StrCat("stuck: ", gpu.consumed(), " seen, ", driver.Where());
  }
  return "";
}

}  // namespace tcpx
