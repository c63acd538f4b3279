// explore_trial.h: the trial whether more lanes bring more.
//
// Rules:   as many lanes again are tried. They stay if the total grows enough beyond the best of late, and by more than
//          noise explains, else they go. Lanes that are opened carry as they come: they are measured once the last one
//          has. Pure.
//
// Threads: one at a time. Units: bytes per second, nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_PILOT_EXPLORE_TRIAL_H_
#define TCPX_NET_SOCKET_PILOT_EXPLORE_TRIAL_H_

#include <cstdint>

#include "net_socket/pilot/piloted_lanes.h"

namespace tcpx {

class ExploreTrial {
 public:
  enum class Verdict { kHelps, kInVain, kLastInVain };

  // After `vain_max` trials in vain, in a row, there shall be a pause.
  explicit ExploreTrial(int vain_max) : vain_max_(vain_max) {}

  // `base`: what the trial is compared with. `limited`: by the network. False: there is nothing to try.
  bool Begin(int64_t now_ns, double base, bool limited, int may_open, PilotedLanes* lanes);
  // True until the lanes that were ordered have come, or their time is over.
  bool Awaits(int64_t now_ns, const PilotedLanes& lanes) const;
  // True once after Awaits was: measuring begins.
  bool Came();
  // In vain: it is undone.
  Verdict Judge(double total, double noise, PilotedLanes* lanes);
  void Undo(PilotedLanes* lanes);

 private:
  bool Tried(int lane) const;
  void KeepOthers(PilotedLanes* lanes) const;

  const int vain_max_;
  PilotedLanes::Lanes tried_;
  double base_ = 0;
  int64_t opening_until_ns_ = 0;
  bool grew_ = false;  // the latest was not in vain
  int vain_ = 0;       // in a row
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PILOT_EXPLORE_TRIAL_H_
