// lane_pilot.h: finds the smallest number of bulk lanes that brings a connection all that the network gives, and
// chooses which of them carry.
//
// Purpose: nobody knows beforehand how fast a path is, whether it limits each flow, or how many paths there are. So the
//          pilot tries while the connection runs. It opens more lanes while the total grows (ExploreTrial), replaces a
//          crowded lane by one on another path (SpreadTrial), drops lanes that bring nothing (ThinTrial), and pauses a
//          lane that is far slower than the others (LameLanes). If one flow fills the path, more lanes only lengthen
//          the queue at its bottleneck. Pure.
// Rules:   docs/lanes.md. One trial at a time, judged by a look in which the connection never paused; one that breaks
//          off because it paused is undone. Pauses between tries differ by a little, by the seed, so that two
//          connections get out of step.
// Threads: one at a time. Units: bytes, nanoseconds; the numbers are in tuning.h. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/measured_window.h"
#include "net_socket/pilot/trials.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {

// When something is tried again. Each failure doubles the pause.
class Backoff {
 public:
  explicit Backoff(int64_t first_ns, int64_t max_ns = tuning::kEveryMaxNs)
      : first_ns_(first_ns), max_ns_(max_ns), wait_ns_(first_ns) {}

  // False until a time was set.
  bool started() const { return next_ns_ != 0; }
  bool Due(int64_t now_ns) const { return started() && now_ns >= next_ns_; }
  // No try has failed lately.
  bool fresh() const { return wait_ns_ == first_ns_; }
  void At(int64_t next_ns) { next_ns_ = next_ns; }
  void NoLaterThan(int64_t next_ns) { next_ns_ = std::min(next_ns_, next_ns); }
  void RestartAt(int64_t next_ns) { wait_ns_ = first_ns_, next_ns_ = next_ns; }
  // `jitter`: about 1, a factor of this pause.
  void InVain(int64_t now_ns, double jitter) {
    next_ns_ = now_ns + static_cast<int64_t>(static_cast<double>(wait_ns_) * jitter);
    wait_ns_ = std::min(2 * wait_ns_, max_ns_);
  }

 private:
  int64_t first_ns_;
  int64_t max_ns_;
  int64_t wait_ns_;
  int64_t next_ns_ = 0;
};

class LanePilot final : public LanePolicy {
 public:
  explicit LanePilot(const Settings& settings);

  bool Step(int64_t now_ns, const Look& look) override {
    const bool changed = Decide(now_ns, look);
    return lanes_.KeepOne() || changed;
  }
  void Opened(int lane) override;
  int carrying() const { return lanes_.carrying(); }

 private:
  enum class Trial { kNone, kExplore, kSpread, kThin };

  bool Decide(int64_t now_ns, const Look& look);
  bool WasStill(int64_t now_ns);
  bool Judge(int64_t now_ns, double total);
  bool PauseLame(int64_t now_ns) { return piloted_ && lame_.Pause(now_ns, window_, &lanes_); }
  bool JudgeExplore(int64_t now_ns, double total);
  bool JudgeSpread(int64_t now_ns);
  bool JudgeThin(int64_t now_ns, double total);
  void Watch(int64_t now_ns, double total);
  bool Begin(int64_t now_ns, double total);
  bool Thin(int64_t now_ns, double total);
  bool Spread(int64_t now_ns, double total);
  void PauseSpreading(int64_t now_ns) {
    spread_again_ns_ = now_ns + static_cast<int64_t>(Jitter() * static_cast<double>(tuning::kSpreadEveryNs));
  }
  void PauseExploring(int64_t now_ns);
  double Jitter();

  const bool piloted_;
  MeasuredWindow window_;
  PastWindows past_;
  LameLanes lame_;
  Trial trial_ = Trial::kNone;
  ExploreTrial explore_;
  SpreadTrial spread_;
  ThinTrial thin_;
  Backoff explore_again_;
  int64_t spread_again_ns_ = 0;
  Backoff same_queue_again_;
  int64_t same_queue_ns_ = 0;  // when it was found last
  Backoff thin_again_;
  int64_t restarted_ns_ = 0;  // when the path changed last
  int pauses_ = 0;            // of exploring, in a row, since the path changed
  int may_open_ = 0;          // as of this step
  uint64_t random_;
};

// For tests: lanes are opened, moved and closed at random, all the time, so that whatever a policy may order happens
// within seconds, and between any two bytes. One lane carries always.
class LaneShuffle final : public LanePolicy {
 public:
  explicit LaneShuffle(const Settings& settings)
      : LanePolicy(settings), random_(static_cast<std::minstd_rand::result_type>(settings.seed)) {}

  bool Step(int64_t now_ns, const Look& look) override;
  void Opened(int lane) override { (void)lanes_.Opened(lane); }

 private:
  std::minstd_rand random_;
};

}  // namespace tcpx
