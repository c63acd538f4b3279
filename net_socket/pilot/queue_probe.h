// queue_probe.h: whether lanes that were just opened found an empty path, or the queue that all others are in.
//
// Purpose: more lanes bring more where each is limited. Then a new one finds no queue, while the others wait in theirs.
//          Where all are alike, those that carry and those that are new, they share one path: what more of them bring
//          is taken from other connections, which would take it back in the same manner. What a new lane found is what
//          it found first: later it waits in a queue of its own. Pure.
//
// Threads: one at a time. Units: microseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_PILOT_QUEUE_PROBE_H_
#define TCPX_NET_SOCKET_PILOT_QUEUE_PROBE_H_

#include <cstdint>
#include <vector>

#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/piloted_lanes.h"

namespace tcpx {

class QueueProbe {
 public:
  // kAnother: queues, which differ. kUnknown: there is none, or the kernel does not say.
  enum class Found { kUnknown, kEmptyPath, kAnother, kSameQueue };

  // In each step.
  void See(const LanePolicy::Look& look, const PilotedLanes& lanes);
  // A trial begins: those that are `opened` come later.
  void Begin(const PilotedLanes& lanes, const PilotedLanes::Lanes& opened);
  // By those that have come since.
  Found found() const;

 private:
  struct Opened {
    int lane = 0;
    int64_t least_us = 0;  // when it was new; 0: it has not come
  };

  std::vector<LanePolicy::RoundTrips> latest_;  // by lane; empty: not known
  int64_t base_us_ = 0;                         // the least of all, ever; 0: not known
  // The median of the lanes that carried before the trial; 0: not known.
  int64_t median_us_ = 0;
  bool alike_ = false;
  std::vector<Opened> opened_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PILOT_QUEUE_PROBE_H_
