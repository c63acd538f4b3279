// spread_trial.h: the trial whether a lane that shares its path with many others is better off on another one.
//
// Purpose: where a network hashes flows to paths, some paths have more of them than others, and a collective is as slow
//          as its slowest connection. More lanes would take from others, who would take it back; as many that are
//          better spread take from nobody.
//
// Rules:   a lane that has data all the time, and over many looks brings clearly less than the median, is crowded, if
//          the network is the connection's limit now and then. One lane is opened, and both carry. Where the new one is
//          clearly faster the crowded one is paused, and closed if it is not missed; else the new one goes. After some
//          in vain, in a row, or many in all, or half a minute, it is over; a path that changes begins it anew, once in
//          two minutes. Pure.
//
// Threads: one at a time. Units: bytes per second, nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_PILOT_SPREAD_TRIAL_H_
#define TCPX_NET_SOCKET_PILOT_SPREAD_TRIAL_H_

#include <cstdint>
#include <vector>

#include "net_socket/pilot/measured_window.h"
#include "net_socket/pilot/piloted_lanes.h"

namespace tcpx {

class SpreadTrial {
 public:
  // kWithout: the crowded lane is paused, and there is to be one more look.
  enum class Verdict { kLookAgain, kWithout, kOver };

  explicit SpreadTrial(int lanes_max) : known_(static_cast<size_t>(lanes_max)) {}

  // A look without a trial.
  void See(const MeasuredWindow& window, const PilotedLanes& lanes);
  // Its socket is another one.
  void Forget(int lane) { known_[static_cast<size_t>(lane)] = {}; }
  // `base`: what there is without a trial. False: no lane is crowded, or there were trials enough.
  bool Begin(int64_t now_ns, double base, PilotedLanes* lanes);
  // True until the lane that was ordered has come, or its time is over.
  bool Awaits(int64_t now_ns, const PilotedLanes& lanes) const;
  // True once after Awaits was: measuring begins.
  bool Came();
  // kOver: there are as many lanes as before.
  Verdict Judge(const MeasuredWindow& window, double noise, PilotedLanes* lanes);
  void Undo(PilotedLanes* lanes);
  void PathChanged(int64_t now_ns);

 private:
  struct Known {
    double brought = 0;  // on average
    double dry = 0;      // of the looks, a part
    int looks = 0;
  };

  bool Over(int64_t now_ns) const;
  int Crowded(const PilotedLanes& lanes) const;
  Verdict Choose(PilotedLanes* lanes);

  std::vector<Known> known_;
  int old_ = 0;
  int new_ = 0;
  double base_ = 0;
  int64_t opening_until_ns_ = 0;
  int looks_ = 0;
  double old_brought_ = 0;
  double new_brought_ = 0;
  bool without_old_ = false;
  int64_t first_ns_ = 0;  // of its trials; 0: none yet
  bool limited_ = false;  // by the network, in a look since the path changed
  int tries_ = 0;
  int vain_ = 0;  // in a row
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PILOT_SPREAD_TRIAL_H_
