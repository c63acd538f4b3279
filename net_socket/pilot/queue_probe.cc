#include "net_socket/pilot/queue_probe.h"

#include <algorithm>

#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

// Lanes that wait between these two are in one queue, as far as that shows. The base is not subtracted: it is not known
// where others filled the queue from the start.
bool Alike(int64_t least_us, int64_t most_us) {
  return static_cast<double>(most_us) < tuning::kAlike * static_cast<double>(least_us);
}

}  // namespace

void QueueProbe::See(const LanePolicy::Look& look, const PilotedLanes& lanes) {
  if (look.round_trips == nullptr) return;
  latest_ = *look.round_trips;
  for (Opened& opened : opened_) {
    if (opened.least_us == 0 && lanes.carries(opened.lane)) {
      opened.least_us = latest_[static_cast<size_t>(opened.lane)].least_us;
    }
  }
  for (const LanePolicy::RoundTrips& lane : latest_) {
    if (lane.least_us > 0 && (base_us_ == 0 || lane.least_us < base_us_)) base_us_ = lane.least_us;
  }
}

void QueueProbe::Begin(const PilotedLanes& lanes, const PilotedLanes::Lanes& opened) {
  opened_.clear();
  median_us_ = 0;
  if (latest_.empty()) return;
  for (int lane : opened) opened_.push_back({lane, 0});
  std::vector<int64_t> round_trips;
  for (int lane : lanes.Those(PilotedLanes::State::kCarries)) {
    const int64_t now_us = latest_[static_cast<size_t>(lane)].now_us;
    if (now_us > 0) round_trips.push_back(now_us);
  }
  if (round_trips.empty()) return;
  std::sort(round_trips.begin(), round_trips.end());
  median_us_ = round_trips[round_trips.size() / 2];
  alike_ = Alike(round_trips.front(), round_trips.back());
}

bool QueueProbe::complete() const {
  return std::all_of(opened_.begin(), opened_.end(), [](const Opened& opened) { return opened.least_us > 0; });
}

QueueProbe::Found QueueProbe::found() const {
  const int64_t queue_us = median_us_ - base_us_;
  if (base_us_ == 0 || queue_us < tuning::kQueueMinUs) return Found::kUnknown;
  int64_t least_us = 0, most_us = 0;
  for (const Opened& opened : opened_) {
    if (opened.least_us > 0 && (least_us == 0 || opened.least_us < least_us)) least_us = opened.least_us;
    most_us = std::max(most_us, opened.least_us);
  }
  if (least_us == 0) return Found::kUnknown;
  if (static_cast<double>(least_us - base_us_) < tuning::kEmptyPart * static_cast<double>(queue_us)) {
    return Found::kEmptyPath;
  }
  return alike_ && Alike(least_us, most_us) ? Found::kSameQueue : Found::kAnother;
}

}  // namespace tcpx
