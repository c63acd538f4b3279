// lane_pilot.h: how many of a connection's bulk lanes there are, and which carry: as few as bring what the network gives.
//
// Purpose: where nobody knows a path's speed, or whether it limits each flow, or how many paths flows are hashed to, the
//          number of lanes is found while running. More are tried while the total grows, those that bring nothing are
//          given up, and one far below its sisters is paused, since the last chunk of a message would wait there. On a
//          path that one flow fills the others only lengthen the queue at its bottleneck. Pure.
//
// Rules:   a total is that of 200 ms, 100 ms after the last change, in which the connection never stood still.
//          Explore: as many lanes again are tried; they stay if the total grows enough beyond the best of late, and by
//          more than noise explains (past_windows.h), else they go, and after three vain tries there is a pause. Thin: a
//          sixth of the lanes is paused; they go if the total stands in one of three windows. Losses of thinning don't
//          add up: each is compared with the best since it began, and shortly before. Watch: where the total falls, all
//          of it begins anew. A trial that breaks off because the connection stood still is undone. Dials are bounded
//          (dial_allowance.h).
//          Lanes are opened only while the network is what the connection waits for. Pauses between tries differ by a
//          little, by the seed, so that two connections get out of step. Whatever happens, one lane carries. Where lanes
//          can't be opened and closed there is lane_thinner.h.
//
// Threads: one at a time. Units: bytes, nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_SEND_LANE_PILOT_H_
#define TCPX_NET_SOCKET_SEND_LANE_PILOT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "net_socket/send/dial_allowance.h"
#include "net_socket/send/lane_policy.h"
#include "net_socket/send/past_windows.h"

namespace tcpx {

class LanePilot final : public LanePolicy {
 public:
  static constexpr int64_t kSettleNs = 100 * kMillisecond;
  static constexpr int64_t kMeasureNs = 200 * kMillisecond;
  // A connection that has not been looked at for so long stood still.
  static constexpr int64_t kPauseNs = 60 * kMillisecond;
  // Of steady traffic, before the first trial: beyond slow start.
  static constexpr int64_t kFirstTrialNs = 300 * kMillisecond;
  // Between trials; doubled by each that was in vain.
  static constexpr int64_t kThinEveryNs = 5 * kSecond;
  static constexpr int64_t kExploreEveryNs = 2 * kSecond;
  static constexpr int64_t kEveryMaxNs = 60 * kSecond;
  // While the total is far below the best that is known.
  static constexpr int64_t kBelowBestEveryNs = 2 * kSecond;
  static constexpr int64_t kLameForNs = 500 * kMillisecond;
  static constexpr int64_t kLameForMaxNs = 2 * kSecond;
  // For lanes to be opened.
  static constexpr int64_t kOpenWithinNs = kSecond;

  explicit LanePilot(const Settings& settings);

  bool Step(int64_t now_ns, const Look& look) override;
  std::vector<LaneOrder> TakeOrders() override;
  void Opened(int lane) override;
  void Refused(int lane) override;
  void Closed(int lane) override;
  bool carries(int lane) const override { return lanes_[static_cast<size_t>(lane)].state == State::kCarries; }
  // As of when nothing was left to try.
  Found found() const override { return found_; }
  int carrying() const { return static_cast<int>(Those(State::kCarries).size()); }

 private:
  // kPaused: has a socket, and may carry again. kLame: paused for its slowness.
  enum class State : uint8_t { kNone, kOpening, kCarries, kPaused, kLame, kClosing };
  enum class Trial { kNone, kExplore, kThin };
  struct Lane {
    State state = State::kNone;
    uint64_t acked = 0;     // at the step before
    uint64_t measured = 0;  // in the window
    int dry_steps = 0;      // in it, in which it held nothing
    bool needed = false;    // thinning failed by it
    int64_t lame_until_ns = 0;
    int64_t lame_for_ns = 0;  // the latest time; 0: it was not lame lately
    int lame_count = 0;
  };
  // How long to wait before the next trial of a kind.
  struct Backoff {
    int64_t first_ns;
    int64_t next_ns = 0;  // 0: not set yet
    int64_t wait_ns = first_ns;

    bool Due(int64_t now_ns) const { return next_ns != 0 && now_ns >= next_ns; }
    void Reset(int64_t now_ns) { wait_ns = first_ns, next_ns = now_ns + wait_ns; }
    void InVain(int64_t now_ns, double jitter);
  };
  using Lanes = std::vector<int>;

  Lanes Those(State state) const;
  void StartWindow(int64_t now_ns);
  bool Decide(int64_t now_ns, const Look& look);
  // True where it had to change something: whatever was decided, one lane carries.
  bool KeepOne();
  bool StoodStill(int64_t now_ns);
  bool Measure(int64_t now_ns, const Look& look, bool still);
  bool Judge(int64_t now_ns, double total);
  bool JudgeExplore(int64_t now_ns, double total);
  bool JudgeThin(int64_t now_ns, double total);
  bool Watch(int64_t now_ns, double total);
  bool limited() const { return limited_steps_ * 2 >= steps_; }
  bool Begin(int64_t now_ns, double total);
  bool Explore(int64_t now_ns, double total);
  void OpenMore(int wanted);
  bool Thin(double total);
  bool PauseLame(int64_t now_ns);
  bool Lame(const Lane& lane, double floor) const;
  bool TryLame(int64_t now_ns);
  void Drop(int lane);
  void Undo();
  void KeepOthers();
  void Settled(double total);
  Lanes LanesToPause(size_t count) const;
  double Jitter();
  State& state(int lane) { return lanes_[static_cast<size_t>(lane)].state; }
  int64_t MeasuredMedian() const;

  std::vector<Lane> lanes_;
  std::vector<LaneOrder> orders_;
  uint64_t random_;
  Trial trial_ = Trial::kNone;
  Lanes tried_;  // of the trial: those that were added, or paused
  int64_t opening_until_ns_ = 0;
  bool grew_ = false;  // the latest try to explore was not in vain
  int vain_ = 0;       // tries to explore, in a row
  int thin_vain_ = 0;  // the same of thinning
  size_t batch_ = 0;   // that thinning begins with; 0: a sixth
  Backoff thin_{kThinEveryNs};
  Backoff explore_{kExploreEveryNs};
  double thin_top_ = 0;  // the best since thinning began, bytes per second
  int thin_looks_ = 0;   // windows in a row in which the total was too low without those that thinning paused
  double base_ = 0;      // before the trial
  double best_ = 0;      // of late
  double average_ = 0;   // of the windows without a trial
  PastWindows past_;     // the same
  DialAllowance dials_;
  int low_windows_ = 0;  // in a row, far below average_
  Found found_;
  int may_open_ = 0;

  int64_t last_ns_ = 0;      // the step before; 0: none
  int64_t window_ns_ = 0;    // where measuring begins
  int64_t measured_ns_ = 0;  // time in the window so far
  uint64_t measured_ = 0;    // bytes in it
  int steps_ = 0;            // in it
  int limited_steps_ = 0;    // of them, with Look::limited
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEND_LANE_PILOT_H_
