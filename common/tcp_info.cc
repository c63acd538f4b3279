#include "common/tcp_info.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include <algorithm>

namespace tcpx {

// linux/tcp.h has the struct without the names of the states (TCP_ESTABLISHED of netinet/tcp.h).
constexpr int kEstablished = 1;
constexpr uint32_t kNoRtt = ~uint32_t{0};

bool ReadTcpInfo(int fd, TcpInfo* info) {
  tcp_info kernel{};  // What the kernel does not fill stays 0.
  socklen_t length = sizeof(kernel);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &kernel, &length) != 0) return false;
  info->established = kernel.tcpi_state == kEstablished;
  info->has_acked = length >= offsetof(tcp_info, tcpi_bytes_acked) + sizeof(kernel.tcpi_bytes_acked);
  info->bytes_acked = kernel.tcpi_bytes_acked;
  info->segments_flying = kernel.tcpi_unacked;
  const bool has_window = length >= offsetof(tcp_info, tcpi_snd_wnd) + sizeof(kernel.tcpi_snd_wnd);
  if (has_window) info->window_bytes = kernel.tcpi_snd_wnd;
  info->probes = kernel.tcpi_probes;
  info->resent = kernel.tcpi_retransmits;
  info->last_ack_ms = kernel.tcpi_last_ack_recv;
  info->last_data_ms = kernel.tcpi_last_data_recv;
  info->rto_ms = kernel.tcpi_rto / 1000;
  info->rtt_us = kernel.tcpi_rtt;
  info->rtt_min_us = kernel.tcpi_min_rtt == kNoRtt ? 0 : kernel.tcpi_min_rtt;
  info->retransmissions = kernel.tcpi_total_retrans;
  info->needless = std::min(kernel.tcpi_dsack_dups, kernel.tcpi_total_retrans);
  info->segments_sent = kernel.tcpi_data_segs_out;
  info->delivery_bytes_per_second = kernel.tcpi_delivery_rate;
  info->busy_us = kernel.tcpi_busy_time;
  info->window_limited_us = kernel.tcpi_rwnd_limited;
  info->buffer_limited_us = kernel.tcpi_sndbuf_limited;
  return true;
}

}  // namespace tcpx
