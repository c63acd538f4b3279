#include "net_socket/connect/unaccepted.h"

#include <algorithm>

namespace tcpx {

bool FreePlace::Ask(const std::shared_ptr<UnacceptedPlace>& place, bool has_room, int64_t now_ns) {
  if (holder_.lock() == place) return true;
  const auto gone = [now_ns](const Waiting& one) { return now_ns - one.asked_ns >= kWaitsNs; };
  waits_.erase(std::remove_if(waits_.begin(), waits_.end(), gone), waits_.end());
  const auto mine = std::find_if(waits_.begin(), waits_.end(),
                                 [&place](const Waiting& one) { return one.source == place->source(); });
  const bool takes = holder_.expired() && mine == waits_.begin();  // Of an empty list begin and end are the same.
  if (takes) {
    holder_ = place;
    since_ns_ = now_ns;
  }
  if (takes || has_room) {
    if (mine != waits_.end()) waits_.erase(mine);
    return true;
  }
  if (mine != waits_.end()) {
    mine->asked_ns = now_ns;
  } else if (waits_.size() < kWaitingMax) {
    waits_.push_back({place->source(), now_ns, now_ns});
  }
  return false;
}

std::optional<ConnectionId> FreePlace::Overdue(const PeerSource& source, int64_t turn_ns, int64_t now_ns) const {
  const bool next = !waits_.empty() && waits_.front().source == source;
  if (!next || now_ns - waits_.front().since_ns < kWaitsMinNs) return std::nullopt;
  const std::shared_ptr<UnacceptedPlace> holder = holder_.lock();
  if (holder == nullptr || now_ns - since_ns_ < turn_ns) return std::nullopt;
  return holder->id();
}

}  // namespace tcpx
