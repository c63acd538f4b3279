// hub.h: the statistics of the process: who has numbers, the thread that looks at them, and where it
// writes them.
//
// Purpose: connections join with a link and leave with their last numbers. A thread of its own looks at every
//          connection once a second, writes the file every 10 s and answers readers of the socket, so that neither
//          messages nor housekeeping ever wait for a disk or a reader. StatsPace says how often it looks.
// Threads: Start, Stop, Join, Leave and Take from any but its own.
// Lifetime: the plugin's, shorter than the options'. Whoever has started it stops it. What closed connections have
//          counted stays.
// Errors:  one WARN each for a file, socket, thread or memory that can't be had; everything else continues.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/mutex.h"
#include "common/params.h"
#include "net_socket/engine/link.h"
#include "net_socket/stats/snapshot.h"

namespace tcpx {

// When the statistics look, and when they write.
// Purpose: a look comes once a second, or less often where looks would cost more than a third of a percent of a CPU,
//          but every 10 s at least. Only the look itself counts: else a reader that asks the socket often would slow
//          looks down. Files are written every 10 s, of the latest look, however long that is ago.
// Threads: one at a time. Units: nanoseconds of MonotonicNanos; 0 is due. Errors: none.
class StatsPace {
 public:
  static constexpr int64_t kLookEveryNs = kSecond;
  static constexpr int64_t kLookEveryMaxNs = 10 * kSecond;
  static constexpr int64_t kWriteEveryNs = 10 * kSecond;
  static constexpr int64_t kCostShare = 300;  // a look's cost, times this, is the least time until the next one

  bool LookDue(int64_t now_ns) const { return now_ns >= look_ns_; }
  bool WriteDue(int64_t now_ns) const { return now_ns >= write_ns_; }
  // `cost_ns`: CPU.
  void Looked(int64_t now_ns, int64_t cost_ns) {
    look_ns_ = now_ns + std::clamp(cost_ns * kCostShare, kLookEveryNs, kLookEveryMaxNs);
  }
  // The first file is of before the first connection: the second comes soon.
  void Wrote(int64_t now_ns) {
    write_ns_ = now_ns + (first_ ? kLookEveryNs : kWriteEveryNs);
    first_ = false;
  }
  int64_t next_ns() const { return std::min(look_ns_, write_ns_); }

 private:
  int64_t look_ns_ = 0;
  int64_t write_ns_ = 0;
  bool first_ = true;
};

class NumbersSource {
 public:
  // What the connection has moved, and waited for, so far. By the statistics' own thread.
  virtual void ReadNumbers(ConnectionNumbers* numbers) = 0;

 protected:
  ~NumbersSource() = default;
};

// One connection's end.
class StatsEntry {
 public:
  StatsEntry(Link<NumbersSource> source, ConnectionNumbers first)
      : source_(std::move(source)), numbers_(std::move(first)) {}

  // As of the latest look.
  ConnectionNumbers numbers() {
    MutexLock lock(mutex_);
    return numbers_;
  }

 private:
  friend class StatsHub;

  const Link<NumbersSource> source_;
  Mutex mutex_;  // taken after the link's, and after the hub's
  ConnectionNumbers numbers_ TCPX_GUARDED_BY(mutex_);
  bool left_ TCPX_GUARDED_BY(mutex_) = false;
};

class StatsHub {
 public:
  using ReadRma = std::function<RmaNumbers()>;

  // `read_rma`: null where nobody counts one-sided transfers.
  explicit StatsHub(const Options& options, ReadRma read_rma = nullptr);

  // One more, one fewer, needs the thread. With the last one it has ended, and so have file and socket.
  void Start();
  void Stop();

  using Read = std::function<void(ConnectionNumbers*)>;
  std::shared_ptr<StatsEntry> Join(Link<NumbersSource> source, const Read& read);
  // The last numbers. The link is not held.
  void Leave(const std::shared_ptr<StatsEntry>& entry, const Read& read);

  // As of the latest look.
  Snapshot Take(bool connections);

 private:
  class Outputs;

  void Run();
  void TakeTurn(StatsPace* pace, Outputs* outputs);
  // Adds up the CPU time of the thread since the last call.
  void NoteCost(int64_t* cpu_ns);
  void LookAtAll();

  const Options& options_;
  const ReadRma read_rma_;
  const ProcessNumbers process_;
  Mutex start_mutex_;
  int users_ TCPX_GUARDED_BY(start_mutex_) = 0;
  std::thread thread_ TCPX_GUARDED_BY(start_mutex_);
  OwnedFd stop_;
  bool warned_ TCPX_GUARDED_BY(start_mutex_) = false;  // that there is no thread
  // The thread's, one after the other: what does not work was reported.
  bool warned_file_ = false;
  bool warned_socket_ = false;

  Mutex mutex_;
  absl::flat_hash_set<std::shared_ptr<StatsEntry>> entries_ TCPX_GUARDED_BY(mutex_);
  std::set<std::string> peers_ TCPX_GUARDED_BY(mutex_);
  ThreadWatch threads_ TCPX_GUARDED_BY(mutex_);
  Snapshot kept_ TCPX_GUARDED_BY(mutex_);  // with the totals of closed connections only; Take adds what is open now
};

}  // namespace tcpx
