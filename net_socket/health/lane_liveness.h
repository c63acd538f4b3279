// lane_liveness.h: what the kernel knows about a lane, and when that means that nobody answers.
//
// Purpose: a peer that is alive and does not read for minutes is healthy; a flow that the network swallows is dead.
//          What tells them apart is not progress but whether the peer's kernel answers. Pure, but for ReadLaneTcpInfo.
// Rule:    A lane is dead when it holds unacknowledged bytes, nothing was acknowledged between any two samples of the
//          timeout, no segment of the peer's arrived for as long, and
//            - the peer's window is open and segments are in flight: each was sent again and again without an answer;
//              or
//            - nothing is in flight: three probes in a row went unanswered. The kernel sends them up to two minutes
//              apart and forgets the count with each answer, so a closed window alone never kills, nor does a long
//              silence between two probes; or
//            - the window was closed with segments in flight (a peer short of memory): these are sent again as probes,
//              at doubling intervals, and the last three went unanswered.
//          The death of the whole host is the health socket's to find (health_peer.h).
// Threads: one at a time.
// Units:   as the names say; times of MonotonicNanos.
// Errors:  where the kernel won't tell, a lane counts as alive.
// Source:  common/tcp_info.h; icsk_probes_out in tcp_ack and tcp_retransmit_timer, Linux 6.18. Where the window is not
//          known, one with segments in flight counts as open.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/tcp_info.h"
#include "net_socket/health/tuning.h"

namespace tcpx {

struct LaneTcpInfo : TcpInfo {
  uint32_t held_bytes = 0;  // given to the kernel and not acknowledged

  // Since anything was heard.
  int64_t heard_ms() const { return last_ack_ms < last_data_ms ? last_ack_ms : last_data_ms; }
  // The peer takes nothing: it does not read.
  bool window_closed() const { return held_bytes > 0 && (window_bytes == 0 || segments_flying == 0); }
};

// False where `fd` is no TCP socket, or the kernel is too old to tell.
bool ReadLaneTcpInfo(int fd, LaneTcpInfo* lane);

// "rtt 0.213 ms, 3 retransmissions, last acknowledgement 1.5 s ago, 4096 bytes unacknowledged, window closed".
std::string DescribeTcpInfo(const LaneTcpInfo& lane);

// The latest samples of one lane.
class LaneLiveness {
 public:
  // True exactly when the rule above says that the lane is dead.
  bool Dead(const LaneTcpInfo& lane, int64_t now_ns, int64_t timeout_ns);
  // The lane holds nothing.
  void Forget() { samples_ = 0; }

 private:
  uint64_t bytes_acked_ = 0;
  int64_t since_ns_ = 0;  // first sample of this silence
  int samples_ = 0;       // of this silence
};

// When it is suspected that the network swallows a lane.
// Purpose: long before lane_liveness.h gives a lane up, another socket can be tried in addition. Pure.
// Rule:    A lane is suspected when it holds unacknowledged bytes, none was acknowledged for kSilentNs, nothing of the
//          peer's came for as long, and the kernel has sent again, or has probed a window that is shut, kUnansweredMin
//          times without an answer; one probe is enough when its answer is overdue (kProbeAnswerNs). A peer that does
//          not read answers probes. Where a lane was moved a short while ago, and nothing of it has moved since, the
//          times double.
class LaneSilence {
 public:
  // True exactly when the rule above says so. Each look at a socket that holds something.
  bool Suspects(const LaneTcpInfo& lane, int64_t now_ns);
  // The lane holds nothing, or waits for another socket.
  void Forget() { since_ns_ = 0; }
  // It has been given another socket for its silence.
  void Moved(int64_t now_ns);
  // Something of it has moved.
  void Carried() {
    long_ns_ = tuning::kSilentNs;
    moved_ns_ = 0;
  }

 private:
  uint64_t bytes_acked_ = 0;
  int64_t since_ns_ = 0;  // the first look of this silence; 0: none
  int64_t long_ns_ = tuning::kSilentNs;
  int64_t moved_ns_ = 0;
};

}  // namespace tcpx
