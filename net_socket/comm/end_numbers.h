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
#include "net_socket/comm/transfer_times.h"
#include "net_socket/stats/hub.h"

namespace tcpx {

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
