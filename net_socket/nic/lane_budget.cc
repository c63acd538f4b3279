#include "net_socket/nic/lane_budget.h"

#include <algorithm>

#include "net_socket/message/wire.h"

namespace tcpx {

void LaneBudget::SetDescriptors(int64_t descriptors) {
  max_ = descriptors < 0 ? kLanesMax : std::min(kLanesMax, descriptors / 4);
}

std::shared_ptr<const void> LaneBudget::Take(int bulk_lanes) {
  open_.fetch_add(bulk_lanes, std::memory_order_relaxed);
  const auto give_back = [this, bulk_lanes](const void*) { open_.fetch_sub(bulk_lanes, std::memory_order_relaxed); };
  return std::shared_ptr<const void>(this, give_back);
}

int LaneBudget::Share(int wanted, int least, int64_t left) {
  const int64_t share = std::clamp<int64_t>(left / tuning::kConnectionsToLeaveFor, std::max(least, 1), kLanesMax);
  return static_cast<int>(std::min<int64_t>(wanted, share));
}

int LaneBudget::MayOpen(int64_t left, int busy) {
  return left <= 0 ? 0 : std::max(std::min(tuning::kBusyLanesMax - busy, Share(kLanesPilotedMax, 1, left)), 0);
}

int LaneBudget::Remembered(int known, int usual, int64_t left, int busy) {
  return Share(std::min(known, std::max(usual, MayOpen(left, busy))), 1, left);
}

void OpenLanes::Open(size_t lane) {
  if (taken_.size() <= lane) taken_.resize(lane + 1);
  if (taken_[lane] == nullptr) taken_[lane] = budget_->Take(1);
}

}  // namespace tcpx
