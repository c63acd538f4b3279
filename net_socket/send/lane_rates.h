// lane_rates.h: a connection's bulk lanes side by side: which takes how much of what is left, and which nothing.
//
// Threads: each lane's owner sets its own and looks; TakeOrders and what comes of them by the thread that carries them
//          out; any reads.
// Lifetime: outlives the lanes. Units: bytes per second, bytes, nanoseconds. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/mutex.h"
#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {

class LaneRates {
 public:
  struct Settings {
    LanePolicy::Settings lanes;
    bool has_pilot = false;  // pilot/lane_pilot.h; else all carry
    bool shuffled = false;   // its LaneShuffle
    // There are orders, or something was found. By a thread that looks at a lane: it must not wait.
    std::function<void()> ordered = [] {};
    // How many lanes the process may open more.
    std::function<int()> may_open = [] { return 0; };
    // This connection has brought another this many bytes; returns what all of the process have.
    std::function<uint64_t(uint64_t)> brought = [](uint64_t) { return uint64_t{0}; };
  };
  // What a look at a lane has seen.
  struct Seen {
    uint64_t acked = 0;           // so far
    int64_t held = 0;             // unsent or unacknowledged
    bool full = false;            // it holds what it may, or all that there is
    int64_t peer_limited_us = 0;  // so far, by its window
    LanePolicy::RoundTrips round_trips;
  };

  explicit LaneRates(Settings settings);

  void Set(int lane, int64_t bytes_per_second) { lanes_[lane].rate.store(bytes_per_second, std::memory_order_relaxed); }
  int64_t Get(int lane) const { return lanes_[lane].rate.load(std::memory_order_relaxed); }
  // 0 to 1, of the lanes that carry; equal parts while any of their rates is unknown. Where lanes come and go one of
  // which nothing is known counts as the slowest.
  double Share(int lane) const;
  // What all lanes hold, as of their latest looks.
  int64_t Held() const;
  // Lanes are opened and closed.
  bool piloted() const { return settings_.lanes.piloted; }

  // A lane that does not is to take no chunk, and to ask again after kAskAgainNs.
  static constexpr int64_t kAskAgainNs = tuning::kStepNs;
  bool Carries(int lane) const { return lanes_[lane].carries.load(std::memory_order_relaxed); }
  void Looked(int lane, int64_t now_ns, const Seen& seen);

  std::vector<LaneOrder> TakeOrders() {
    MutexLock lock(mutex_);
    return policy_ == nullptr ? std::vector<LaneOrder>() : policy_->TakeOrders();
  }
  void Opened(int lane);
  void Refused(int lane) {
    MutexLock lock(mutex_);
    if (policy_ != nullptr) policy_->Refused(lane);
  }
  void Closed(int lane);
  LanePolicy::Found found() {
    MutexLock lock(mutex_);
    return policy_ == nullptr ? LanePolicy::Found() : policy_->found();
  }

 private:
  struct Lane {
    std::atomic<int64_t> rate{0};
    std::atomic<uint64_t> acked{0};
    std::atomic<int64_t> held{0};
    std::atomic<int64_t> peer_limited_us{0};
    std::atomic<int64_t> round_trip_us{0};
    std::atomic<int64_t> least_us{0};  // of them, with the socket at hand
    std::atomic<bool> full{false};
    std::atomic<bool> carries{false};
  };

  void Step(int64_t now_ns);
  // Whether most of the lanes that carry wait for the network, and few for the peer.
  bool Limited(int64_t since_ns) TCPX_REQUIRES(mutex_);
  void Publish() TCPX_REQUIRES(mutex_);
  static std::unique_ptr<LanePolicy> MakePolicy(const Settings& settings);

  const Settings settings_;
  const int count_;
  const std::unique_ptr<Lane[]> lanes_;
  std::atomic<int64_t> next_step_ns_{0};
  Mutex mutex_;
  const std::unique_ptr<LanePolicy> policy_ TCPX_PT_GUARDED_BY(mutex_);  // null: all carry
  // Step's, kept so that it allocates nothing.
  std::vector<uint64_t> acked_ TCPX_GUARDED_BY(mutex_);
  std::vector<bool> dry_ TCPX_GUARDED_BY(mutex_);
  std::vector<int64_t> peer_limited_us_ TCPX_GUARDED_BY(mutex_);
  std::vector<LanePolicy::RoundTrips> round_trips_ TCPX_GUARDED_BY(mutex_);
  int64_t stepped_ns_ TCPX_GUARDED_BY(mutex_) = 0;
  int peer_limits_ TCPX_GUARDED_BY(mutex_) = 0;
  uint64_t brought_ TCPX_GUARDED_BY(mutex_) = 0;
  int found_ TCPX_GUARDED_BY(mutex_) = 0;
};

}  // namespace tcpx
