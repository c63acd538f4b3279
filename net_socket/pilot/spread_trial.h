// spread_trial.h: finds out whether a lane that shares its path with many flows is faster on another path.
//
// Purpose: if a network hashes flows to paths, some paths get more flows than others, and a collective is as slow as
//          its slowest connection. More lanes would take bandwidth from other connections, which would take it back.
//          The same number of lanes, spread better, takes bandwidth from no other connection.
// Rules:   a lane is crowded if it usually has data, and over many looks carries clearly less than the median; trials
//          also need a look in which the network was the limit. A trial opens a new lane, and both carry data. If the
//          new one is clearly faster, the crowded one is paused, and closed if the total does not drop; else the new
//          one is closed. Trials stop after a few failures in a row, after many trials, or half a minute after the
//          first; a path change starts them again, at most once in two minutes. Pure.
// Threads: one at a time. Units: bytes per second, nanoseconds. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "net_socket/pilot/measured_window.h"
#include "net_socket/pilot/piloted_lanes.h"

namespace tcpx {

class SpreadTrial {
 public:
  // kWithout: the crowded lane is paused; take one more look without it.
  enum class Verdict { kLookAgain, kWithout, kOver };

  explicit SpreadTrial(int lanes_max) : known_(static_cast<size_t>(lanes_max)) {}

  // A look while no trial runs.
  void See(const MeasuredWindow& window, const PilotedLanes& lanes);
  // The lane has a new socket.
  void Forget(int lane) { known_[static_cast<size_t>(lane)] = {}; }
  // `base`: the total without a trial. False: no lane is crowded, no more trials are allowed, or no lane can be opened.
  bool Begin(int64_t now_ns, double base, PilotedLanes* lanes);
  // True until the new lane is open, or its time is over.
  bool Awaits(int64_t now_ns, const PilotedLanes& lanes) const;
  // True once, after Awaits has become false: measuring begins.
  bool Came();
  // kOver: the trial has ended, with as many lanes as before.
  Verdict Judge(const MeasuredWindow& window, double noise, PilotedLanes* lanes);
  void Undo(PilotedLanes* lanes);
  void PathChanged(int64_t now_ns);

 private:
  struct Known {
    double brought = 0;  // average of the looks
    double dry = 0;      // share of looks in which it ran out of data
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
  int64_t first_ns_ = 0;  // start of the first trial; 0: none yet
  bool limited_ = false;  // a look since the path changed has found the network to be the limit
  int tries_ = 0;
  int vain_ = 0;  // failures in a row
};

}  // namespace tcpx
