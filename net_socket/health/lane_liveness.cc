#include "net_socket/health/lane_liveness.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/socket.h"

namespace tcpx {

bool ReadLaneTcpInfo(int fd, LaneTcpInfo* lane) {
  if (!ReadTcpInfo(fd, lane) || !lane->has_acked) return false;
  const int held = QueuedBytes(fd);
  lane->held_bytes = held > 0 ? static_cast<uint32_t>(held) : 0;
  return true;
}

std::string DescribeTcpInfo(const LaneTcpInfo& lane) {
  std::string text = absl::StrFormat("rtt %.3f ms, %d retransmissions, last acknowledgement %.1f s ago",
                                     lane.rtt_us * 1e-3, lane.retransmissions, lane.last_ack_ms * 1e-3);
  if (lane.held_bytes > 0) absl::StrAppend(&text, ", ", lane.held_bytes, " bytes unacknowledged");
  if (lane.window_closed()) absl::StrAppend(&text, ", the peer takes no more (its window is closed)");
  return text;
}

bool LaneLiveness::Dead(const LaneTcpInfo& lane, int64_t now_ns, int64_t timeout_ns) {
  const bool silent = lane.held_bytes > 0 && samples_ > 0 && lane.bytes_acked == bytes_acked_;
  if (!silent) {
    bytes_acked_ = lane.bytes_acked;
    since_ns_ = now_ns;
    samples_ = lane.held_bytes > 0 ? 1 : 0;
    return false;
  }
  ++samples_;
  if (samples_ <= tuning::kSamplesMin || now_ns - since_ns_ < timeout_ns) return false;
  if (lane.last_ack_ms * kMillisecond < timeout_ns) return false;
  if (lane.segments_flying == 0) return lane.probes >= tuning::kProbesMin;
  // An interval of rto, the half and the quarter of it before.
  return lane.window_bytes > 0 || uint64_t{lane.last_ack_ms} * 4 >= uint64_t{lane.rto_ms} * 7;
}

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
