// flight.h: what a connection has under way, as another thread may see it.
//
// Purpose: errors name the message they hit, and housekeeping tells a stall from progress, without a lock or a count
//          while a message is moved: the few fields that hold it are relaxed atomics, which cost what plain ones do and
//          publish nothing.
// Threads: Relaxed: one writes, any reads. Values of different fields may be of different moments.
// Units:   bytes; a message without bytes counts as one unit.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tcpx {

template <typename T, std::memory_order kStore = std::memory_order_relaxed,
          std::memory_order kLoad = std::memory_order_relaxed>
class Relaxed {
 public:
  Relaxed(T value = T()) : value_(value) {}  // NOLINT: acts as a T
  Relaxed& operator=(T value) {
    value_.store(value, kStore);
    return *this;
  }
  operator T() const { return value_.load(kLoad); }  // NOLINT
  // By the one that writes: no instruction locks the bus.
  void Add(T more = 1) { *this = value_.load(std::memory_order_relaxed) + more; }
  T get() const { return *this; }

 private:
  std::atomic<T> value_;
};

// A thread that has seen a store of it also sees all stores before that; its loads come before all that follow them. No
// fence: gcc's thread sanitizer does not know fences.
template <typename T>
using Ordered = Relaxed<T, std::memory_order_release, std::memory_order_acquire>;

// What counts how much of a message is done: its bytes; an empty one is one unit, so that it is sent, claimed and
// landed exactly once.
constexpr uint64_t Units(uint64_t bytes) { return bytes == 0 ? 1 : bytes; }
// In the place of a message's length, as long as nothing of it has come or gone.
inline constexpr uint64_t kUnknownBytes = ~uint64_t{0};

// The oldest unfinished message, and how many there are.
struct Flight {
  int messages = 0;
  uint64_t sequence = 0;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
  bool total_known = true;  // false: a receive whose message has not begun
};

// "message 17, 4096 of 1048576 bytes, and 3 more"; empty when nothing is under way.
std::string DescribeFlight(const Flight& flight);

// Finds requests that stall.
class StallWatch {
 public:
  // True exactly once for each stall of `limit_ns`; never where that is 0.
  bool Stalled(const Flight& flight, int64_t now_ns, int64_t limit_ns);
  // Since when the oldest request has been stalled; 0: it is not.
  int64_t since_ns() const { return since_ns_; }

 private:
  Flight last_;
  int64_t since_ns_ = 0;
  bool reported_ = false;
};

}  // namespace tcpx
