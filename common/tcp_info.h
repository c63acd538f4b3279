// tcp_info.h: what the kernel says of a TCP socket. The only place that reads TCP_INFO.
//
// Threads: any.
// Units:   as the names say.
// Errors:  what this kernel is too old to tell keeps its default.
// Source:  tcp(7) and linux/tcp.h.
#pragma once

#include <cstdint>

namespace tcpx {

struct TcpInfo {
  bool established = false;
  bool has_acked = false;  // bytes_acked is known: Linux 4.1
  uint64_t bytes_acked = 0;
  uint32_t segments_flying = 0;          // sent and not acknowledged
  uint32_t window_bytes = ~uint32_t{0};  // what the peer would take; ~0: not known (before Linux 5.4)
  uint32_t probes = 0;                   // of a closed window, in a row without an answer
  uint32_t resent = 0;                   // how often the oldest segment was sent again, in a row
  uint32_t last_ack_ms = 0;              // since the peer's last segment with an acknowledgement
  uint32_t last_data_ms = 0;             // the same, with data
  uint32_t rto_ms = 0;                   // until the next retransmission; each interval is twice the one before
  uint32_t rtt_us = 0;
  uint32_t rtt_min_us = 0;                 // 0: none was measured, or not known (before Linux 4.6)
  uint32_t retransmissions = 0;            // of the whole life
  uint32_t needless = 0;                   // of these, that the peer had already; 0: not known (before Linux 4.19)
  uint32_t segments_sent = 0;              // with data, of the whole life; 0: not known (before Linux 4.6)
  uint64_t delivery_bytes_per_second = 0;  // as last measured; 0: not known (before Linux 4.9)
  // Time, over the connection's life, in which bytes were not acknowledged; and the parts of it in which the peer's
  // window, or the send buffer, was the limit. 0: not known (before Linux 4.10).
  uint64_t busy_us = 0;
  uint64_t window_limited_us = 0;
  uint64_t buffer_limited_us = 0;
};

// False where `fd` is no TCP socket.
bool ReadTcpInfo(int fd, TcpInfo* info);

}  // namespace tcpx
