// explore_trial.h: finds out whether more lanes bring more, and whether new lanes found an empty path, or the queue
// that all other lanes wait in.
//
// Rules:   docs/lanes.md. Each new lane carries as soon as it is open; measuring begins when the last one is. Of its
//          round trips only the first count: later it waits in its own queue. Pure.
// Threads: one at a time. Units: bytes per second, nanoseconds; microseconds where a name says so. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "net_socket/pilot/lane_policy.h"

namespace tcpx {

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

}  // namespace tcpx
