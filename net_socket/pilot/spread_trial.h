// spread_trial.h: finds out whether a lane that shares its path with many flows is faster on another path.
//
// Purpose: if a network hashes flows to paths, some paths get more flows than others, and a collective is as slow as
//          its slowest connection. More lanes would take bandwidth from other connections, which would take it back.
//          The same number of lanes, spread better, takes bandwidth from no other connection.
// Rules:   docs/lanes.md. A trial opens a lane that carries in the place of the crowded one, or of the slowest where
//          the network is the limit, and stays if it is clearly faster and the total does not drop. Pure.
// Threads: one at a time. Units: bytes per second, nanoseconds. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/measured_window.h"

namespace tcpx {

class SpreadTrial {
 public:
  explicit SpreadTrial(int lanes_max) : known_(static_cast<size_t>(lanes_max)) {}

  // A look while no trial runs.
  void See(const MeasuredWindow& window, const PilotedLanes& lanes);
  // The lane has a new socket.
  void Forget(int lane) { known_[static_cast<size_t>(lane)] = {}; }
  // `base`: the total without a trial. False: no lane is crowded, no more trials are allowed, or no lane can be opened.
  bool Begin(int64_t now_ns, double base, PilotedLanes* lanes);
  // True until the new lane is open and no longer in slow start, or its time to open is over. The crowded one carries.
  bool Awaits(int64_t now_ns, const LanePolicy::Look& look, const PilotedLanes& lanes);
  // True once, after Awaits has become false: measuring begins, and other lanes may carry.
  bool Came(PilotedLanes* lanes);
  // True: the trial has ended, with as many lanes as before. False: it takes another look.
  bool Judge(const MeasuredWindow& window, double noise, PilotedLanes* lanes);
  void Undo(PilotedLanes* lanes);
  // Trials that are over start again once kSpreadAgainNs have passed since the first could begin.
  void PathChanged(int64_t now_ns);

 private:
  struct Known {
    double brought = 0;  // average of the looks
    double dry = 0;      // share of looks in which it ran out of data
    int looks = 0;
  };

  bool Over(int64_t now_ns) const;
  // -1: none.
  int Crowded(const PilotedLanes& lanes) const;

  std::vector<Known> known_;
  int old_ = 0;
  int new_ = 0;
  double base_ = 0;
  int64_t opening_until_ns_ = 0;
  int64_t opened_ns_ = 0;  // the new one, as Awaits saw it; 0: not yet
  int looks_ = 0;
  double total_ = 0;  // sums of the looks
  double new_brought_ = 0;
  int64_t first_ns_ = 0;  // when the first trial could begin, all lanes being known; 0: not yet
  bool limited_ = false;  // a look since the path changed has found the network to be the limit
  bool changed_ = false;  // the path, since trials were over
  int vain_ = 0;          // failures in a row
};

}  // namespace tcpx
