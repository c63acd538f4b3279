// lane_thinner.h: how many of a connection's bulk lanes carry data: as few as bring what all of them bring.
//
// Purpose: for connections whose lanes can't be opened and closed (those: lane_pilot.h). Where nobody knows a path's speed, or whether it limits each flow, a connection has several lanes. On a path
//          that one flow fills, the others only lengthen the queue at the bottleneck and lose more packets there, at the
//          cost of the small messages beside them. So one lane at a time is paused for a moment: it stays paused if the
//          total does not fall, and all are tried again now and then, and at once where the total falls. Pure.
//
// Rules:   a total is that of 200 ms, 100 ms after the last change, in which the connection never stood still. A paused
//          lane is given no chunk; it keeps its socket. Losses of thinning don't add up: each trial is compared with the
//          total of all lanes. A trial that fails, or breaks off because the connection stood still, is undone, and the
//          next one comes after twice the time.
//
// Threads: one at a time. Units: bytes, nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_SEND_LANE_THINNER_H_
#define TCPX_NET_SOCKET_SEND_LANE_THINNER_H_

#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "net_socket/send/lane_policy.h"

namespace tcpx {

class LaneThinner final : public LanePolicy {
 public:
  static constexpr int64_t kSettleNs = 100 * kMillisecond;
  static constexpr int64_t kMeasureNs = 200 * kMillisecond;
  // A connection that has not been looked at for so long stood still.
  static constexpr int64_t kPauseNs = 60 * kMillisecond;
  // Of steady traffic, before the first trial: beyond slow start.
  static constexpr int64_t kFirstTrialNs = kSecond;
  // Between trials to pause one, and to take all again; doubled by each that was in vain.
  static constexpr int64_t kThinEveryNs = 5 * kSecond;
  static constexpr int64_t kGrowEveryNs = 2 * kSecond;
  static constexpr int64_t kEveryMaxNs = 60 * kSecond;

  // All lanes carry at first.
  explicit LaneThinner(int lanes) : carries_(static_cast<size_t>(lanes), true), before_(carries_) {}

  bool Step(int64_t now_ns, const Look& look) override;
  std::vector<LaneOrder> TakeOrders() override { return {}; }
  void Opened(int) override {}
  void Refused(int) override {}
  void Closed(int) override {}
  bool carries(int lane) const override { return carries_[static_cast<size_t>(lane)]; }
  int carrying() const;

 private:
  enum class Trial { kNone, kThin, kGrow };
  // How long to wait before the next trial of a kind.
  struct Backoff {
    int64_t first_ns;
    int64_t next_ns = 0;  // 0: not set yet
    int64_t wait_ns = first_ns;

    bool Due(int64_t now_ns) const { return next_ns != 0 && now_ns >= next_ns; }
    void Reset(int64_t now_ns) { wait_ns = first_ns, next_ns = now_ns + wait_ns; }
    void InVain(int64_t now_ns);
  };

  void StartWindow(int64_t now_ns);
  bool StoodStill(int64_t now_ns);
  bool Judge(int64_t now_ns, double total);
  bool JudgeThin(int64_t now_ns, double total);
  bool JudgeGrow(int64_t now_ns, double total);
  bool Begin(int64_t now_ns, double total);
  bool Undo();
  bool FellFor3(double total);
  void TakeAll(int64_t now_ns);
  size_t LaneToPause();

  std::vector<bool> carries_;
  std::vector<bool> before_;  // before the trial
  Trial trial_ = Trial::kNone;
  Backoff thin_{kThinEveryNs};
  Backoff grow_{kGrowEveryNs};
  double all_total_ = 0;  // of all lanes when thinning began, bytes per second
  double base_ = 0;       // before the trial
  double average_ = 0;    // of the windows without a trial
  int low_windows_ = 0;   // in a row, far below average_
  size_t paused_last_ = 0;

  std::vector<uint64_t> acked_;  // at the step before
  int64_t last_ns_ = 0;          // the step before; 0: none
  int64_t window_ns_ = 0;        // where measuring begins
  int64_t measured_ns_ = 0;      // time in the window so far
  uint64_t measured_ = 0;        // bytes in it
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEND_LANE_THINNER_H_
