// thin_trial.h: finds out whether some of the lanes are needed, and which are so much slower than the others that they
// are paused, and for how long.
//
// Rules:   docs/lanes.md. Pure.
// Threads: one at a time. Units: bytes per second, nanoseconds. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/measured_window.h"

namespace tcpx {

class ThinTrial {
 public:
  enum class Verdict { kLookAgain, kMissed, kNotMissed };

  // `lanes_min` lanes are never tried. Thinning ends after `vain_max` single lanes in a row that were missed.
  ThinTrial(int lanes, size_t lanes_min, int vain_max)
      : lanes_min_(lanes_min), vain_max_(vain_max), needed_(static_cast<size_t>(lanes)) {}

  // `top`: the best total recently. False: no lane is left to try, and thinning begins anew the next time.
  bool Begin(double total, double top, const MeasuredWindow& window, PilotedLanes* lanes);
  // kMissed: the lanes carry again. kNotMissed: they are dropped.
  Verdict Judge(double total, double noise, PilotedLanes* lanes);
  void Undo(PilotedLanes* lanes) {
    looks_ = 0;
    lanes->Set(tried_, PilotedLanes::State::kCarries);
  }

  // Lanes that were needed may no longer be.
  void LanesChanged() {
    vain_ = 0;
    needed_.assign(needed_.size(), false);
  }
  void PathChanged() {
    top_ = 0;
    needed_.assign(needed_.size(), false);
  }
  // A lane is new.
  void Forget(int lane) { needed_[static_cast<size_t>(lane)] = false; }

 private:
  PilotedLanes::Lanes LanesToPause(size_t count, const MeasuredWindow& window, const PilotedLanes& lanes) const;

  const size_t lanes_min_;
  const int vain_max_;
  PilotedLanes::Lanes tried_;
  std::vector<bool> needed_;  // by lane: thinning failed by it
  double top_ = 0;            // the best since thinning began
  int vain_ = 0;              // single lanes that were missed, in a row
  int looks_ = 0;             // in a row in which the total was too low without those that are paused
  size_t batch_ = 0;          // how many lanes the next trial pauses; 0: a sixth
};

class LameLanes {
 public:
  explicit LameLanes(int lanes) : lanes_(static_cast<size_t>(lanes)) {}

  // Both return true exactly when another lane carries than before.
  bool Pause(int64_t now_ns, const MeasuredWindow& window, PilotedLanes* lanes);
  bool TryAgain(int64_t now_ns, PilotedLanes* lanes) const;

  // A lane is new.
  void Forget(int lane) { lanes_[static_cast<size_t>(lane)] = Lane(); }
  // It may be on another path now.
  void Moved(int lane) { lanes_[static_cast<size_t>(lane)].until_ns = lanes_[static_cast<size_t>(lane)].for_ns = 0; }

 private:
  struct Lane {
    int64_t until_ns = 0;
    int64_t for_ns = 0;  // the latest time; 0: it was not lame lately
    int count = 0;       // in a row
  };

  std::vector<Lane> lanes_;
};

}  // namespace tcpx
