// lame_lanes.h: which lanes are paused because they are far slower than the others, and for how long.
//
// Rules:   docs/lanes.md. Pure.
// Threads: one at a time. Units: nanoseconds. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net_socket/pilot/measured_window.h"
#include "net_socket/pilot/piloted_lanes.h"

namespace tcpx {

class LameLanes {
 public:
  explicit LameLanes(int lanes) : lanes_(static_cast<size_t>(lanes)) {}

  // Both return true exactly when another lane carries than before.
  bool Pause(int64_t now_ns, const MeasuredWindow& window, PilotedLanes* lanes);
  bool TryAgain(int64_t now_ns, PilotedLanes* lanes) const;

  // A lane is new.
  void Forget(int lane) { lanes_[static_cast<size_t>(lane)] = Lane(); }
  // It may be on another path now.
  void Moved(int lane);

 private:
  struct Lane {
    int64_t until_ns = 0;
    int64_t for_ns = 0;  // the latest time; 0: it was not lame lately
    int count = 0;       // in a row
  };

  void PauseOne(int64_t now_ns, int lane, PilotedLanes* lanes);

  std::vector<Lane> lanes_;
};

}  // namespace tcpx
