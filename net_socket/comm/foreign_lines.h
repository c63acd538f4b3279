// foreign_lines.h: how often the log may speak of peers whose bytes are not tcpx, or not theirs.
//
// Purpose: whoever may connect can break connection after connection by such bytes: that fills no disk.
//
// Threads: any.
// Units:   nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_COMM_FOREIGN_LINES_H_
#define TCPX_NET_SOCKET_COMM_FOREIGN_LINES_H_

#include <cstdint>

#include "common/clock.h"
#include "common/mutex.h"

namespace tcpx {

class ForeignLines {
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

#endif  // TCPX_NET_SOCKET_COMM_FOREIGN_LINES_H_
