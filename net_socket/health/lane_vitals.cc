#include "net_socket/health/lane_vitals.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/socket.h"

namespace tcpx {
namespace {

// One or two may be on their way, or lost with their answers.
constexpr uint32_t kProbesMin = 3;
constexpr uint32_t kWindowUnknown = ~uint32_t{0};

}  // namespace

bool ReadLaneVitals(int fd, LaneVitals* vitals) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  if (length < offsetof(tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked)) return false;  // Linux 4.1
  const int held = QueuedBytes(fd);
  vitals->bytes_acked = info.tcpi_bytes_acked;
  vitals->held_bytes = held > 0 ? static_cast<uint32_t>(held) : 0;
  vitals->segments_flying = info.tcpi_unacked;
  const bool tells_window = length >= offsetof(tcp_info, tcpi_snd_wnd) + sizeof(info.tcpi_snd_wnd);
  vitals->window_bytes = tells_window ? info.tcpi_snd_wnd : kWindowUnknown;
  vitals->probes = info.tcpi_probes;
  vitals->last_ack_ms = info.tcpi_last_ack_recv;
  vitals->rto_ms = info.tcpi_rto / 1000;
  vitals->rtt_us = info.tcpi_rtt;
  vitals->retransmissions = info.tcpi_total_retrans;
  return true;
}

std::string DescribeVitals(const LaneVitals& vitals) {
  std::string text = absl::StrFormat("rtt %.3f ms, %d retransmissions, last acknowledgement %.1f s ago",
                                     vitals.rtt_us * 1e-3, vitals.retransmissions, vitals.last_ack_ms * 1e-3);
  if (vitals.held_bytes > 0) absl::StrAppend(&text, ", ", vitals.held_bytes, " bytes unacknowledged");
  if (vitals.window_closed()) absl::StrAppend(&text, ", the peer takes no more (its window is closed)");
  return text;
}

bool LaneLiveness::Dead(const LaneVitals& vitals, int64_t now_ns, int64_t timeout_ns) {
  const bool silent = vitals.held_bytes > 0 && samples_ > 0 && vitals.bytes_acked == bytes_acked_;
  if (!silent) {
    bytes_acked_ = vitals.bytes_acked;
    since_ns_ = now_ns;
    samples_ = vitals.held_bytes > 0 ? 1 : 0;
    return false;
  }
  ++samples_;
  if (samples_ <= kSamplesMin || now_ns - since_ns_ < timeout_ns) return false;
  if (vitals.last_ack_ms * kMillisecond < timeout_ns) return false;
  if (vitals.segments_flying == 0) return vitals.probes >= kProbesMin;
  // An interval of rto, the half and the quarter of it before.
  return vitals.window_bytes > 0 || uint64_t{vitals.last_ack_ms} * 4 >= uint64_t{vitals.rto_ms} * 7;
}

}  // namespace tcpx
