// line_limit.h: how often the log may say the same: strangers could fill a disk with it.
//
// Threads: any.
// Units:   nanoseconds. Errors: none.
#pragma once

#include <cstdint>

#include "common/clock.h"
#include "common/mutex.h"

namespace tcpx {

class LineLimit {
 public:
  // True: a line may be written, the first in a second. *unsaid gets how many others were not since the latest.
  bool May(int64_t now_ns, uint64_t* unsaid) {
    MutexLock lock(mutex_);
    if (latest_ns_ != 0 && now_ns - latest_ns_ < kSecond) {
      ++unsaid_;
      return false;
    }
    latest_ns_ = now_ns;
    *unsaid = unsaid_;
    unsaid_ = 0;
    return true;
  }

 private:
  Mutex mutex_;
  int64_t latest_ns_ TCPX_GUARDED_BY(mutex_) = 0;
  uint64_t unsaid_ TCPX_GUARDED_BY(mutex_) = 0;
};

}  // namespace tcpx
