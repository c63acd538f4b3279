// lane_budget.h: how many bulk lanes a process may have open, and what a new connection gets of what is left.
//
// Purpose: every connection has its full number of lanes, whatever NCCL announces; only where a process really has
//          thousands of lanes, the next connections get fewer, so that descriptors and the kernel's memory last.
// Threads: any. Lifetime: outlives what was taken. Errors: none: a connection always gets what it can't do without.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net_socket/message/wire.h"
#include "net_socket/nic/tuning.h"

namespace tcpx {

class LaneBudget {
 public:
  static constexpr int64_t kLanesMax = tuning::kProcessLanesMax;

  // `descriptors`: how many the process may have; below 0: unknown.
  explicit LaneBudget(int64_t descriptors = -1) { SetDescriptors(descriptors); }
  // Before anything is taken.
  void SetDescriptors(int64_t descriptors) {
    max_ = descriptors < 0 ? kLanesMax : std::min(kLanesMax, descriptors / 4);
  }

  // Those of a connection that is being dialled or is up, until the result goes.
  std::shared_ptr<const void> Take(int bulk_lanes) {
    open_.fetch_add(bulk_lanes, std::memory_order_relaxed);
    const auto give_back = [this, bulk_lanes](const void*) { open_.fetch_sub(bulk_lanes, std::memory_order_relaxed); };
    return std::shared_ptr<const void>(this, give_back);
  }
  int64_t left() const { return max_ - open_.load(std::memory_order_relaxed); }

  // How many of `wanted` bulk lanes are granted: all, while many times as many are left, then fewer; always `least`.
  static int Share(int wanted, int least, int64_t left) {
    const int64_t share = std::clamp<int64_t>(left / tuning::kConnectionsToLeaveFor, std::max(least, 1), kLanesMax);
    return static_cast<int>(std::min<int64_t>(wanted, share));
  }
  // Bulk lanes that one connection may open more while `busy` of the process carry.
  static int MayOpen(int64_t left, int busy) {
    return left <= 0 ? 0 : std::max(std::min(tuning::kBusyLanesMax - busy, Share(kLanesPilotedMax, 1, left)), 0);
  }
  // Those of a new connection where an earlier one has found `known`: beyond its `usual` number only what may be
  // opened.
  static int Remembered(int known, int usual, int64_t left, int busy) {
    return Share(std::min(known, std::max(usual, MayOpen(left, busy))), 1, left);
  }

 private:
  int64_t max_ = 0;
  std::atomic<int64_t> open_{0};
};

// Counts the lanes of one connection whose lanes come and go, until it goes: one that is closed keeps a descriptor.
// Threads: one at a time.
class OpenLanes {
 public:
  explicit OpenLanes(LaneBudget* budget) : budget_(budget) {}

  // Open before: a no-op.
  void Open(size_t lane) {
    if (taken_.size() <= lane) taken_.resize(lane + 1);
    if (taken_[lane] == nullptr) taken_[lane] = budget_->Take(1);
  }

 private:
  LaneBudget* const budget_;
  std::vector<std::shared_ptr<const void>> taken_;  // by lane
};

}  // namespace tcpx
