// deadline.h: bounds every wait of a test.
//
//   Deadline deadline;  // 60 s of a quiet machine (Patience)
//   while (!done && deadline.Yield()) { ... }
// Threads: one at a time.
// Units:   seconds.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "tests/support/seed.h"

namespace tcpx {

class Deadline {
 public:
  explicit Deadline(int seconds = 60) : seconds_(seconds) { Restart(); }

  // There was progress: the time begins anew.
  void Restart() { at_ = Clock::now() + std::chrono::seconds(seconds_ * Patience()); }
  bool Over() const { return Clock::now() >= at_; }
  // Lets others run; false exactly when the time is over. A caller that comes again and again at once finds nothing: it
  // sleeps, longer and longer, since several tests share a CPU.
  bool Yield() const {
    in_vain_ = Clock::now() - last_ < std::chrono::microseconds(100) ? in_vain_ + 1 : 0;
    if (in_vain_ < kSpins) {
      sched_yield();
    } else {
      usleep(NapMicros(in_vain_ - kSpins));
    }
    last_ = Clock::now();
    return !Over();
  }

  static constexpr int kSpins = 200;

  // How long to sleep after so many naps in vain: each costs a CPU a timer and two switches.
  static useconds_t NapMicros(int naps) { return static_cast<useconds_t>(std::min(1000, 100 + 20 * naps)); }

 private:
  using Clock = std::chrono::steady_clock;

  const int seconds_;
  Clock::time_point at_;
  mutable Clock::time_point last_;
  mutable int in_vain_ = 0;
};

}  // namespace tcpx
