// explore_trial.h: finds out whether more lanes bring more.
//
// Rules:   docs/lanes.md. Each new lane carries as soon as it is open; measuring begins when the last one is. Pure.
// Threads: one at a time. Units: bytes per second, nanoseconds. Errors: none.
#pragma once

#include <cstdint>

#include "net_socket/pilot/piloted_lanes.h"
#include "net_socket/pilot/queue_probe.h"

namespace tcpx {

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
  bool Awaits(int64_t now_ns, const PilotedLanes& lanes) const;
  // True once, after Awaits has become false: measuring begins.
  bool Came();
  // All new lanes are in the queue of all others: no look is needed.
  bool FoundSameQueue() const { return probe_.complete() && probe_.found() == QueueProbe::Found::kSameQueue; }
  // A trial that does not help is undone.
  Verdict Judge(double total, double others, double noise, PilotedLanes* lanes);
  void Undo(PilotedLanes* lanes);

 private:
  bool Tried(int lane) const;
  void KeepOthers(PilotedLanes* lanes) const;

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
