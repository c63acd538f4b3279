// transfer_times.h: how long a connection's transfers took, and what it waited for meanwhile.
//
// Purpose: a clock is read at isend or irecv and at the test that reports it done, only where statistics are asked for.
//          Every moment of the connection's life counts for exactly one kind of wait. Small messages come by the
//          million, so that one in kTimedEvery is timed, and for the others the kernel's coarse clock will do: it is as
//          often early as late, and costs a tenth.
//
// Waits:   idle: nothing was posted. refused: nothing was posted and isend had no credit. unheard (of a receiver):
//          posted, and nothing of the oldest message had come. moving: the network had work. untested: all was done and
//          nobody asked.
// Threads: Refused, Begin and End under the comm's mutex; WaitsUntil by any.
// Units:   nanoseconds of MonotonicNanos, bytes.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_COMM_TRANSFER_TIMES_H_
#define TCPX_NET_SOCKET_COMM_TRANSFER_TIMES_H_

#include <pthread.h>

#include <array>
#include <cstdint>

#include "net_socket/message/flight.h"
#include "net_socket/message/log_histogram.h"
#include "net_socket/stats/numbers.h"

namespace tcpx {

class TransferTimes {
 public:
  TransferTimes(bool receives, int64_t now_ns) : receives_(receives), frontier_ns_(now_ns) {}

  // Of express messages; all bulk ones are timed.
  static constexpr unsigned kTimedEvery = 16;

  // A transfer as it is when test reports it done. Of moments 0 is unknown.
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
  // The time of the latest Begin.
  int64_t latest_ns() const { return latest_ns_; }

  // `flight`: what is under way now.
  WaitNumbers WaitsUntil(int64_t now_ns, const Flight& flight) const;
  LogHistogramValues sizes(bool bulk) const { return sizes_[bulk ? 1 : 0].Read(); }
  LogHistogramValues durations(bool bulk) const { return durations_[bulk ? 1 : 0].Read(); }
  // Of the thread that posts; 0: none has.
  int caller() const { return caller_id_; }

 private:
  void NoteCaller();

  const bool receives_;
  pthread_t caller_{};
  Relaxed<int> caller_id_ = 0;
  unsigned turn_ = 0;
  int64_t latest_ns_ = 0;
  int posted_ = 0;
  Relaxed<bool> idle_ = true;
  Relaxed<int64_t> refused_ns_ = 0;  // since when; 0: not
  // All before this is counted.
  Relaxed<int64_t> frontier_ns_;
  Counter idle_ns_;
  Counter no_credit_ns_;
  Counter unheard_ns_;
  Counter moving_ns_;
  Counter untested_ns_;
  std::array<LogHistogram, 2> sizes_;  // express, bulk
  std::array<LogHistogram, 2> durations_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_TRANSFER_TIMES_H_
