#include "net_socket/health/lane_silence.h"

#include <algorithm>

namespace tcpx {

bool LaneSilence::Suspects(const LaneTcpInfo& lane, int64_t now_ns) {
  if (lane.held_bytes == 0 || since_ns_ == 0 || lane.bytes_acked != bytes_acked_) {
    if (since_ns_ != 0 && lane.bytes_acked > bytes_acked_) Carried();
    bytes_acked_ = lane.bytes_acked;
    since_ns_ = lane.held_bytes == 0 ? 0 : now_ns;
    return false;
  }
  const int64_t answer_ns = tuning::kProbeNs + tuning::kProbeAnswerNs + lane.rtt_us * kMicrosecond;
  const bool overdue = lane.window_closed() && lane.probes > 0 && lane.last_ack_ms * kMillisecond >= answer_ns;
  if (!overdue && lane.resent < tuning::kUnansweredMin && lane.probes < tuning::kUnansweredMin) return false;
  return now_ns - since_ns_ >= long_ns_ && lane.last_ack_ms * kMillisecond >= long_ns_;
}

void LaneSilence::Moved(int64_t now_ns) {
  const bool again = moved_ns_ != 0 && now_ns - moved_ns_ < 2 * tuning::kSilentMaxNs;
  long_ns_ = again ? std::min(2 * long_ns_, tuning::kSilentMaxNs) : tuning::kSilentNs;
  moved_ns_ = now_ns;
  Forget();
}

}  // namespace tcpx
