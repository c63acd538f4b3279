// trials.h: what LanePilot tries, and how that is judged: do more lanes bring more, is a crowded one better off on
// another path, are some not needed, and which are so slow that they are paused.
//
// Rules:   docs/lanes.md. Pure.
// Threads: one at a time. Units: bytes per second, nanoseconds; microseconds where a name says so. Errors: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/measured_window.h"

namespace tcpx {

// Whether new lanes found an empty path, or the queue that all other lanes wait in. Of a lane's round trips only the
// first count: later it waits in its own queue.
class QueueProbe {
 public:
  // kAnother: the new lanes wait in a different queue. kUnknown: there is no queue, or the kernel does not say.
  enum class Found { kUnknown, kEmptyPath, kAnother, kSameQueue };

  // To be called in each step.
  void See(const LanePolicy::Look& look, const PilotedLanes& lanes);
  // A trial begins, for which the lanes `opened` are being opened.
  void Begin(const PilotedLanes& lanes, const PilotedLanes::Lanes& opened);
  // What the lanes that have opened since found.
  Found found() const;
  // Each of them has found something.
  bool complete() const {
    return std::all_of(opened_.begin(), opened_.end(), [](const Opened& opened) { return opened.least_us > 0; });
  }

 private:
  struct Opened {
    int lane = 0;
    int64_t least_us = 0;  // when it was new; 0: it is not open yet
  };

  std::vector<LanePolicy::RoundTrips> latest_;  // by lane; empty: not known
  int64_t base_us_ = 0;                         // the least of all, ever; 0: not known
  int64_t median_us_ = 0;                       // of the lanes that carried before the trial; 0: not known
  bool alike_ = false;
  std::vector<Opened> opened_;
};

// Finds out whether more lanes bring more. Each new lane carries as soon as it is open; measuring begins when the last
// one is.
class ExploreTrial {
 public:
  // kSameQueue: several trials found the queue of all others, and none helped.
  enum class Verdict { kHelps, kInVain, kLastInVain, kSameQueue };

  // After `vain_max` trials in a row that did not help there shall be a pause.
  explicit ExploreTrial(int vain_max) : vain_max_(vain_max) {}

  // To be called in each step.
  void See(const LanePolicy::Look& look, const PilotedLanes& lanes) { probe_.See(look, lanes); }
  // `base`: the total that the trial is compared with; `others`: what the process's other connections bring. `limited`:
  // the network is the limit. False: there is nothing to try.
  bool Begin(int64_t now_ns, double base, double others, bool limited, int may_open, PilotedLanes* lanes);
  // True until the ordered lanes are open, or their time is over.
  bool Awaits(int64_t now_ns, const PilotedLanes& lanes) const {
    return now_ns < opening_until_ns_ && !lanes.Those(PilotedLanes::State::kOpening).empty();
  }
  // True once, after Awaits has become false: measuring begins.
  bool Came() { return std::exchange(opening_until_ns_, 0) != 0; }
  // All new lanes are in the queue of all others: no look is needed.
  bool FoundSameQueue() const { return probe_.complete() && probe_.found() == QueueProbe::Found::kSameQueue; }
  // A trial that does not help is undone.
  Verdict Judge(double total, double others, double noise, PilotedLanes* lanes);
  void Undo(PilotedLanes* lanes);

 private:
  const int vain_max_;
  QueueProbe probe_;
  PilotedLanes::Lanes tried_;
  double base_ = 0;
  double others_ = 0;
  int64_t opening_until_ns_ = 0;
  bool grew_ = false;     // the latest helped
  bool another_ = false;  // the latest brought more, and found Found::kAnother
  int vain_ = 0;          // trials in a row that did not help
  int same_queue_ = 0;    // trials that found the same queue since one helped
};

// Finds out whether a lane that shares its path with many flows is faster on another path.
// Purpose: if a network hashes flows to paths, some paths get more flows than others, and a collective is as slow as
//          its slowest connection. More lanes would take bandwidth from other connections, which would take it back.
//          The same number of lanes, spread better, takes bandwidth from no other connection.
// Rule:    a trial opens a lane that carries in the place of the crowded one, or of the slowest where the network is
//          the limit, and stays if it is clearly faster and the total does not drop.
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

// Finds out whether some of the lanes are needed.
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

// Which lanes are so much slower than the others that they are paused, and for how long.
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
