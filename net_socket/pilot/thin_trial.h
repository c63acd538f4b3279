// thin_trial.h: the trial whether some of the lanes are missed.
//
// Rules:   a sixth of the lanes is paused, half of them the slowest; fewer where those were missed, down to one. They
//          go if the total is kept in one of three looks. Losses don't add up: each trial is compared with the best
//          since thinning began, and shortly before. Pure.
//
// Threads: one at a time. Units: bytes per second.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_PILOT_THIN_TRIAL_H_
#define TCPX_NET_SOCKET_PILOT_THIN_TRIAL_H_

#include <cstddef>
#include <vector>

#include "net_socket/pilot/measured_window.h"
#include "net_socket/pilot/piloted_lanes.h"

namespace tcpx {

class ThinTrial {
 public:
  enum class Verdict { kLookAgain, kMissed, kNotMissed };

  // `lanes_min` stay without a trial. Thinning ends after `vain_max` single lanes that are missed, in a row.
  ThinTrial(int lanes, size_t lanes_min, int vain_max)
      : lanes_min_(lanes_min), vain_max_(vain_max), needed_(static_cast<size_t>(lanes)) {}

  // `top`: the best total of late. False: no lane is left to try, and thinning begins anew the next time.
  bool Begin(double total, double top, const MeasuredWindow& window, PilotedLanes* lanes);
  // Missed: they carry again. Not missed: they go.
  Verdict Judge(double total, double noise, PilotedLanes* lanes);
  void Undo(PilotedLanes* lanes);

  // Whatever a lane was needed for may be over.
  void LanesChanged();
  void PathChanged();
  // A lane is new.
  void Forget(int lane) { needed_[static_cast<size_t>(lane)] = false; }

 private:
  void NeedsNone() { needed_.assign(needed_.size(), false); }
  PilotedLanes::Lanes LanesToPause(size_t count, const MeasuredWindow& window, const PilotedLanes& lanes) const;

  const size_t lanes_min_;
  const int vain_max_;
  PilotedLanes::Lanes tried_;
  std::vector<bool> needed_;  // by lane: thinning failed by it
  double base_ = 0;           // before the trial
  double top_ = 0;            // the best since thinning began
  int vain_ = 0;              // single lanes, in a row
  int looks_ = 0;             // in a row in which the total was too low without those that are paused
  size_t batch_ = 0;          // that it begins with; 0: a sixth
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PILOT_THIN_TRIAL_H_
