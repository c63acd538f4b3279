// lane_rates.h: how fast a bulk lane drains; and a connection's lanes side by side: which takes how much of what is
// left, and which nothing.
//
// Threads: each lane's owner sets its own and looks; TakeOrders and what comes of them by the thread that carries them
//          out; any reads.
// Lifetime: outlives the lanes. Units: bytes per second, bytes, nanoseconds. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/mutex.h"
#include "net_socket/message/flight.h"
#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/tuning.h"
#include "net_socket/send/tuning.h"

namespace tcpx {

// How fast a lane drains, and so how much it may hold: it takes a chunk only while what it holds (unsent and
// unacknowledged) drains within milliseconds at its own pace. So a slow flow holds little, and no message waits long
// for a chunk that went to it. Pure, of one thread at a time.
class LaneRate {
 public:
  // `held_min` is what a lane may always hold: a chunk.
  explicit LaneRate(int64_t held_min) : held_min_(held_min) {}

  // At `now`: bytes given to the kernel so far, and how many of them are not acknowledged. `continuous`: the lane has
  // had data to send ever since the look before, however long ago that is (a chunk may take a slow flow 100 ms).
  void Sample(int64_t now_ns, uint64_t sent, int64_t held, bool continuous = false);
  // Another socket takes another path, about which nothing is known.
  void Restart() {
    rate_ = min_rtt_ns_ = 0;
    last_ns_ = 0;
  }
  void set_min_rtt_ns(int64_t min_rtt_ns) { min_rtt_ns_ = min_rtt_ns; }

  // 0 until known.
  int64_t bytes_per_second() const { return rate_; }
  // What the lane may hold before it takes another chunk, and how much of a chunk that is.
  int64_t held_max() const { return std::max(held_min_, Within(tuning::kDrainNs + 2 * min_rtt_ns_)); }
  int64_t chunk_max() const { return std::max(held_min_, Within(tuning::kChunkNs)); }
  // The least of a piloted lane, and so the last of a message.
  int64_t chunk_least() const {
    if (rate_ == 0) return std::min(tuning::kChunkUnknownBytes, held_min_);
    return std::min(std::max(Within(tuning::kChunkLeastNs), tuning::kChunkLeastBytes), held_min_);
  }
  // How much a lane may hold if `part` is its share of all bytes under way.
  int64_t held_max(int64_t part) const {
    return std::min({held_max(), part, std::max(part / 2, Within(tuning::kPartNs + 2 * min_rtt_ns_))});
  }
  // How long to wait before the next look when the lane holds `held` and may hold `bound`.
  int64_t RetryAfterNs(int64_t held, int64_t bound) const;

 private:
  int64_t Within(int64_t ns) const;
  void StartSpan(int64_t now_ns, uint64_t acked, bool busy);
  void EndSpan(int64_t now_ns, uint64_t acked, bool busy);

  const int64_t held_min_;
  int64_t rate_ = 0;
  int64_t min_rtt_ns_ = 0;
  // Acknowledgements come in lumps (a shaper lets up to 64 KiB through at once: 5 ms at 0.1 Gbit/s), so a span begins
  // and ends where a look saw one.
  int64_t span_ns_ = 0;
  uint64_t span_acked_ = 0;
  bool span_busy_ = false;  // no look since found the lane empty
  int64_t last_ns_ = 0;     // the latest look
  uint64_t last_acked_ = 0;
};

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

  void Set(int lane, int64_t bytes_per_second) { lanes_[lane].rate = bytes_per_second; }
  int64_t Get(int lane) const { return lanes_[lane].rate; }
  // 0 to 1, of the lanes that carry; equal parts while any of their rates is unknown. Where lanes come and go one of
  // which nothing is known counts as the slowest.
  double Share(int lane) const;
  // What all lanes hold, as of their latest looks.
  int64_t Held() const;
  // Lanes are opened and closed.
  bool piloted() const { return settings_.lanes.piloted; }

  // A lane that does not is to take no chunk, and to ask again after kAskAgainNs.
  static constexpr int64_t kAskAgainNs = tuning::kStepNs;
  bool Carries(int lane) const { return lanes_[lane].carries; }
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
    Relaxed<int64_t> rate;
    Relaxed<uint64_t> acked;
    Relaxed<int64_t> held;
    Relaxed<int64_t> peer_limited_us;
    Relaxed<int64_t> round_trip_us;
    Relaxed<int64_t> least_us;  // of them, with the socket at hand
    Relaxed<bool> full;
    Relaxed<bool> carries;
  };

  void Step(int64_t now_ns);
  // Whether most of the lanes that carry wait for the network, and few for the peer.
  bool Limited(int64_t since_ns) TCPX_REQUIRES(mutex_);
  void Publish() TCPX_REQUIRES(mutex_);

  const Settings settings_;
  const int count_;
  const std::unique_ptr<Lane[]> lanes_;
  Relaxed<int64_t> next_step_ns_;
  Mutex mutex_;
  const std::unique_ptr<LanePolicy> policy_ TCPX_PT_GUARDED_BY(mutex_);  // null: all carry
  // Step's, kept so that it allocates nothing.
  std::vector<uint64_t> acked_ TCPX_GUARDED_BY(mutex_);
  std::vector<bool> dry_ TCPX_GUARDED_BY(mutex_);
  std::vector<int64_t> peer_limited_us_ TCPX_GUARDED_BY(mutex_);
  std::vector<LanePolicy::RoundTrips> round_trips_ TCPX_GUARDED_BY(mutex_);
  int64_t stepped_ns_ TCPX_GUARDED_BY(mutex_) = 0;
  bool peer_limits_ TCPX_GUARDED_BY(mutex_) = false;
  uint64_t brought_ TCPX_GUARDED_BY(mutex_) = 0;
  int found_ TCPX_GUARDED_BY(mutex_) = 0;
};

}  // namespace tcpx
