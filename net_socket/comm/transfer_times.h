// transfer_times.h: how long a connection's transfers took, and what it waited for meanwhile.
//
// Purpose: a clock is read at isend or irecv and at the test that reports it done, only where statistics are asked for.
//          Every moment of the connection's life counts for exactly one kind of wait. Small messages come by the
//          million, so that one in kTimedEvery is timed, and for the others the kernel's coarse clock will do: it is as
//          often early as late, and costs a tenth.
// Waits:   idle: nothing was posted. refused: nothing was posted and isend had no credit. unheard (of a receiver):
//          posted, and nothing of the oldest message had come. moving: the network had work. untested: all was done and
//          nobody asked. uncalled: the calling thread would have had work, and did not call.
// Threads: Refused, Begin, Called and End under the comm's mutex; calls and WaitsUntil by any.
// Units:   nanoseconds of MonotonicNanos, bytes. Errors: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "net_socket/message/counts.h"
#include "net_socket/message/flight.h"
#include "net_socket/stats/numbers.h"

namespace tcpx {

class TransferTimes {
 public:
  TransferTimes(bool receives, int64_t now_ns) : receives_(receives), frontier_ns_(now_ns) {}

  // One of this many express messages is timed; bulk ones always are.
  static constexpr unsigned kTimedEvery = 16;

  // A transfer at the time when test reports it done. A moment of 0 is unknown.
  struct Span {
    int64_t begun_ns = 0;  // what Begin gave
    int64_t first_ns = 0;  // its first bytes came, where they were not all
    int64_t done_ns = 0;   // it, and all others that are posted, were done
    uint64_t bytes = 0;
    bool bulk = false;
  };

  // isend was answered "not now".
  void Refused();
  // A transfer is posted; `timed`: whatever its turn is. The time, or 0 where it is not timed.
  int64_t Begin(bool timed);
  void End(const Span& span);
  // test was called, and the request was not done before.
  void Called() { calls_.Add(); }
  uint32_t calls() const { return calls_; }
  // The time of the latest Begin.
  int64_t latest_ns() const { return latest_ns_; }

  // `flight`: what is under way now. `uncalled`: there are bytes that the calling thread moves, and it has not called
  // since the latest look. `open`: what this reader's looks have guessed so far; of the stretch that is not over only
  // what lies after the latest look goes by `flight` and `uncalled`.
  WaitNumbers WaitsUntil(int64_t now_ns, const Flight& flight, bool uncalled, OpenWait* open) const;
  LogHistogramValues sizes(bool bulk) const { return sizes_[bulk ? 1 : 0].Read(); }
  LogHistogramValues durations(bool bulk) const { return durations_[bulk ? 1 : 0].Read(); }

 private:
  // A reader that has seen any of its stores sees the odd version too, and begins again.
  class Change {
   public:
    explicit Change(TransferTimes* times) : version_(&times->version_) {
      version_->store(version_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    ~Change() { version_->store(version_->load(std::memory_order_relaxed) + 1, std::memory_order_release); }

   private:
    std::atomic<uint32_t>* const version_;
  };
  struct State {
    WaitNumbers waits;
    int64_t frontier_ns = 0;
    bool idle = false;
    bool refused = false;
  };
  // False: it changed all the time.
  bool Read(State* state) const;

  const bool receives_;
  unsigned turn_ = 0;
  int64_t latest_ns_ = 0;
  int posted_ = 0;
  Relaxed<uint32_t> calls_ = 0;
  std::atomic<uint32_t> version_{0};  // odd: in the middle of a change
  Ordered<bool> idle_ = true;
  Ordered<int64_t> refused_ns_ = 0;  // since when; 0: not
  // All before this is counted.
  Ordered<int64_t> frontier_ns_;
  Ordered<uint64_t> idle_ns_ = 0;
  Ordered<uint64_t> no_credit_ns_ = 0;
  Ordered<uint64_t> unheard_ns_ = 0;
  Ordered<uint64_t> moving_ns_ = 0;
  Ordered<uint64_t> untested_ns_ = 0;
  std::array<LogHistogram, 2> sizes_;  // express, bulk
  std::array<LogHistogram, 2> durations_;
};

}  // namespace tcpx
