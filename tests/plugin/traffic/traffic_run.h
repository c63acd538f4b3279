// traffic_run.h: seeded random messages over one pair, every byte checked.
//
// Purpose: TrafficPlan says what each message is, the same for both ends; TrafficSender and TrafficReceiver each move
//          one end on by a step, so that one thread can drive both in turn or two threads one each.
// Threads: a plan is immutable; each end by one thread. The ends share only the counters.
// Lifetime: both ends borrow the plan, the client and the counters.
// Units:   bytes; a window is a number of requests.
// Errors:  Step returns a Status: the plugin's error, or what is wrong with the data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "nccl/client/net_client.h"
#include "tests/support/pattern.h"
#include "tests/support/seed.h"
#include "tests/support/test_plugin.h"

namespace tcpx {

inline constexpr size_t kMessageMax = size_t{8} << 20;
inline constexpr int kWindowMax = 32;  // requests of a comm, NCCL_NET_MAX_REQUESTS

class TrafficPlan {
 public:
  // `lags` false: receives never wait for sends, which themselves may wait for credits.
  TrafficPlan(uint64_t seed, uint64_t messages, bool lags = true)
      : seed_(seed), messages_(messages), lags_(lags), pattern_(seed, kMessageMax) {}

  uint64_t messages() const { return messages_; }
  const Pattern& pattern() const { return pattern_; }
  // 0 to 8 MiB: about 32 KiB on average, most of them small, some empty.
  size_t Bytes(uint64_t message) const;
  // The capacity of the receive: the message's size or more.
  size_t Capacity(uint64_t message) const;
  int Tag(uint64_t message) const { return static_cast<int>(message % 7); }
  // How many requests an end keeps; it changes every few hundred messages. `end` tells sender (0) and receiver (1)
  // apart.
  int Window(uint64_t message, int end) const;
  // How far (in messages) receives trail sends before message `message` may be received: 0 lets them run ahead.
  uint64_t Lag(uint64_t message) const;

 private:
  const uint64_t seed_;
  const uint64_t messages_;
  const bool lags_;
  const Pattern pattern_;
};

// What one end tells the other.
struct TrafficCounters {
  std::atomic<uint64_t>* received_total = nullptr;  // null: nobody watches
  std::atomic<uint64_t> sends_posted{0};
  std::atomic<bool> sender_stuck{false};  // its window is full: receives must not wait for more
};

enum class StepResult { kNothing, kProgress, kFinished };

// One end's requests in flight, oldest first, and the buffers they use.
class TrafficEnd {
 protected:
  struct InFlight {
    uint64_t message;
    void* request;
    std::unique_ptr<GuardedBuffer> buffer;
  };

  TrafficEnd(NetClient* net, void* comm, const TrafficPlan* plan, TrafficCounters* counters)
      : net_(net), comm_(comm), plan_(plan), counters_(counters) {}
  std::unique_ptr<GuardedBuffer> TakeBuffer(size_t bytes);
  void GiveBuffer(std::unique_ptr<GuardedBuffer> buffer);
  bool finished() const { return next_ == plan_->messages() && in_flight_.empty(); }

  NetClient* const net_;
  void* const comm_;
  const TrafficPlan* const plan_;
  TrafficCounters* const counters_;
  uint64_t next_ = 0;
  std::deque<InFlight> in_flight_;

 private:
  std::vector<std::unique_ptr<GuardedBuffer>> small_;
  std::vector<std::unique_ptr<GuardedBuffer>> large_;
};

class TrafficSender : public TrafficEnd {
 public:
  TrafficSender(NetClient* net, void* comm, const TrafficPlan* plan, TrafficCounters* counters)
      : TrafficEnd(net, comm, plan, counters) {}
  absl::Status Step(StepResult* result);

 private:
  absl::Status Post(StepResult* result);
  absl::Status TestOldest(StepResult* result);
};

class TrafficReceiver : public TrafficEnd {
 public:
  TrafficReceiver(NetClient* net, void* comm, const TrafficPlan* plan, TrafficCounters* counters)
      : TrafficEnd(net, comm, plan, counters) {}
  absl::Status Step(StepResult* result);

 private:
  bool MayPost() const;
  absl::Status Post(StepResult* result);
  absl::Status TestOldest(StepResult* result);
};

using Runner = absl::Status (*)(NetClient* net, const Ends& pair, const TrafficPlan& plan,
                                std::atomic<uint64_t>* received_total);

// Moves the whole plan over `pair`: one thread for both ends in turn, or a thread for each. Each message that has come
// is added to `received_total`, which may be null.
absl::Status RunTraffic(NetClient* net, const Ends& pair, const TrafficPlan& plan,
                        std::atomic<uint64_t>* received_total = nullptr);
absl::Status RunTrafficOnTwoThreads(NetClient* net, const Ends& pair, const TrafficPlan& plan,
                                    std::atomic<uint64_t>* received_total = nullptr);

}  // namespace tcpx
