// deadline.h: bounds every wait of a test.
//
//   Deadline deadline;  // 60 s, more under a sanitizer
//   while (!done && deadline.Yield()) { ... }
//
// Threads: one at a time.
// Units:   seconds.
#ifndef TCPX_TESTS_SUPPORT_DEADLINE_H_
#define TCPX_TESTS_SUPPORT_DEADLINE_H_

#include <sched.h>

#include <chrono>

#include "tests/support/seed.h"

namespace tcpx {

class Deadline {
 public:
  explicit Deadline(int seconds = 60) : seconds_(seconds) { Restart(); }

  // There was progress: the time begins anew.
  void Restart() { at_ = Clock::now() + std::chrono::seconds(seconds_ * TimeScale()); }
  bool Over() const { return Clock::now() >= at_; }
  // Lets others run; false exactly when the time is over.
  bool Yield() const {
    sched_yield();
    return !Over();
  }

 private:
  using Clock = std::chrono::steady_clock;

  const int seconds_;
  Clock::time_point at_;
};

}  // namespace tcpx

#endif  // TCPX_TESTS_SUPPORT_DEADLINE_H_
