// activity.h: whether anything was begun at one end of a connection, for those who look at it now and then.
//
// Purpose: thousands of idle connections cost nothing but a look at this each. A reader that finds that an end does
//          nothing, and has nothing left to do, need not look again until this changes.
// Threads: any.
// Lifetime: shared. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>

namespace tcpx {

class Activity {
 public:
  // A request is posted, a lane is lost or has another socket and what it owes, or the end closes.
  void Note() { count_.fetch_add(1, std::memory_order_release); }
  uint64_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> count_{0};
};

}  // namespace tcpx
