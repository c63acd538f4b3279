// end_numbers.h: what one end of a connection counts, and tells the statistics.
//
// Purpose: messages and bytes that were reported done, who called, and, where statistics are asked for, how long things
//          took and what they waited for.
// Budget:  Count and SeeCaller: a few plain stores.
// Threads: Join, Leave, Count, SeeCaller and what times() points to under the comm's mutex, or before others have the
//          comm; the rest from any, NumbersSource's as it says.
// Lifetime: owned by its comm; borrows all that it is given. Units: bytes, nanoseconds of MonotonicNanos. Errors: none.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/end_lanes.h"
#include "net_socket/comm/progress_check.h"
#include "net_socket/message/counts.h"
#include "net_socket/message/flight.h"
#include "net_socket/stats/hub.h"

namespace tcpx {

// How long a connection's transfers took, and what it waited for meanwhile.
// Purpose: a clock is read at isend or irecv and at the test that reports it done, only where statistics are asked for.
//          Every moment of the connection's life counts for exactly one kind of wait. Small messages come by the
//          million, so that one in kTimedEvery is timed, and for the others the kernel's coarse clock will do: it is as
//          often early as late, and costs a tenth.
// Waits:   idle: nothing was posted. refused: nothing was posted and isend had no credit. unheard (of a receiver):
//          posted, and nothing of the oldest message had come. moving: the network had work. untested: all was done and
//          nobody asked. uncalled: the calling thread would have had work, and did not call.
// Threads: Refused, Begin, Called and End under the comm's mutex; calls and WaitsUntil by any.
// Units:   nanoseconds of MonotonicNanos, bytes. Errors: none.
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

// Messages that were reported done, and their bytes; what has happened to lanes.
struct CommTally {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  ConnectionCounts counts;
};

class EndNumbers final : public NumbersSource {
 public:
  EndNumbers(const ConnectionSetup* setup, ConnectionEnd* end, const ConnectionFailure* failure,
             const ProgressCheck* progress)
      : setup_(setup), end_(end), failure_(failure), progress_(progress) {}

  // Once the lanes are there.
  void Join(const Tie& tie);
  void Leave();

  // Null: nobody asks for statistics.
  TransferTimes* times() const { return times_.get(); }
  // As the statistics tell messages apart; the lanes may be one.
  bool IsBulk(size_t bytes) const { return setup_->lane_count() > 1 && bytes > setup_->express_bytes; }
  // Whose CPU the statistics and the verdicts look at: one instruction, while it is the same.
  void SeeCaller() {
    if (caller_ != __builtin_thread_pointer()) NoteCaller();
  }
  // A request was reported done, and its times are kept: a thread that sees the count sees them. The mutex is held, so
  // that no locked instruction is needed.
  void Count(size_t bytes) {
    SeeCaller();
    const size_t kind = IsBulk(bytes) ? 1 : 0;
    bytes_[kind].store(bytes_[kind].load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    messages_[kind].store(messages_[kind].load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Messages go through the memory of a GPU's pool.
  void NoteGpu(int device) { gpu_.store(device, std::memory_order_relaxed); }

  uint64_t messages() const { return messages_[0] + messages_[1]; }
  // The thread that calls, as the kernel knows it; 0: not known.
  int caller() const { return caller_id_.load(std::memory_order_relaxed); }
  CommTally tally() const;
  // As of the latest look of the statistics, the last one after Leave; none where nobody asks for them.
  std::optional<ConnectionNumbers> latest() const;

  void ReadNumbers(ConnectionNumbers* numbers) override;

 private:
  // It is another thread than before. No two threads that run have the same pointer, and reading it is one instruction,
  // where pthread_self is a call.
  void NoteCaller();
  void Describe(ConnectionNumbers* numbers) const;
  void ReadVerdict(ConnectionNumbers* numbers) const;
  // Without what only the reactor knows.
  void ReadCounts(ConnectionNumbers* numbers);
  void ReadLane(int index, LaneNumbers* lane) const;
  void NameLane(int index, LaneNumbers* lane) const;
  bool HasWorkForCaller() const;
  const LaneTable& table() const { return failure_->healing().lanes(); }

  const ConnectionSetup* const setup_;
  ConnectionEnd* const end_;
  const ConnectionFailure* const failure_;
  const ProgressCheck* const progress_;
  std::array<std::atomic<uint64_t>, 2> messages_{};  // express, bulk
  std::array<std::atomic<uint64_t>, 2> bytes_{};
  const void* caller_ = nullptr;
  std::atomic<int> caller_id_{0};
  std::atomic<int> gpu_{-1};
  uint64_t seen_ = 0;  // of the end's activity, at the latest look of the statistics
  bool idle_ = false;  // as of then: but for the time, nothing is to be read before there is more of it
  std::unique_ptr<TransferTimes> times_;
  std::shared_ptr<StatsEntry> stats_;
};

}  // namespace tcpx
