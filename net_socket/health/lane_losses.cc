#include "net_socket/health/lane_losses.h"

namespace tcpx {

bool LaneLosses::Look(const std::vector<LaneSegments>& lanes, int64_t now_ns, int64_t long_ns) {
  if (begin_.size() != lanes.size()) {
    begin_ = lanes;
    begun_ns_ = now_ns;
    stretch_.assign(lanes.size(), LaneSegments());
    told_.resize(lanes.size());
    return false;
  }
  if (now_ns - begun_ns_ < long_ns) return false;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const bool another = lanes[i].sent < begin_[i].sent || lanes[i].retransmitted < begin_[i].retransmitted;
    const LaneSegments from = another ? LaneSegments() : begin_[i];
    stretch_[i] = {lanes[i].sent - from.sent, lanes[i].retransmitted - from.retransmitted};
  }
  begin_ = lanes;
  begun_ns_ = now_ns;
  return true;
}

bool LaneLosses::News(size_t lane, bool loses) {
  const bool news = loses && !told_[lane];
  told_[lane] = loses;
  return news;
}

}  // namespace tcpx
