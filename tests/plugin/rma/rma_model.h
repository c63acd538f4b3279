// rma_model.h: random puts, signals and gets between all ranks of a lab, and what must be true of each signal.
//
// Purpose: works in rounds. In a round each stream (from, to, context) has up to 32 operations, each with a bit of its
//          own in a word of the target that signals add to: a signal that is counted twice carries into another bit. A
//          thread watches the words, and at the moment that a bit is set it looks at all bytes which that signal
//          covers. At the end of a round ranks get what was put, and look at it.
// Threads: Round moves all ranks in the caller's; the watcher is a thread of its own.
// Units:   bytes.
// Errors:  a Status that names the seed's round, the stream and the operation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/plugin/rma/rma_lab.h"
#include "tests/support/pattern.h"
#include "tests/support/seed.h"

namespace tcpx {

class RmaModel {
 public:
  static constexpr unsigned kSource = 1, kWindow = 2, kSignals = 4, kGotten = 8;
  struct Shape {
    int contexts = 1;
    size_t stream_bytes = 4 << 20;  // most that the puts of one stream and round have together
    unsigned on_gpu = 0;            // kSource, kWindow, kSignals, kGotten: memory that is not the host's
    bool never_reset = false;       // signals go on from what they were in the round before
  };
  RmaModel(RmaLab* lab, uint64_t seed, const Shape& shape);

  // Registers the memory of all ranks.
  absl::Status Prepare();
  absl::Status Round();
  uint64_t operations() const { return operations_; }
  uint64_t signals() const { return signals_; }
  void Deregister();

 private:
  static constexpr int kMost = 32;  // operations of a stream and round, as NCCL's queues have them

  struct Operation {
    uint64_t message = 0;  // of the pattern
    uint64_t offset = 0;   // in the stream's place, at both ends
    size_t bytes = 0;
    bool signals = false;
    bool strong = false;
    bool increments = false;  // the second word, with INC; always strong
  };
  struct Stream {
    int from = 0;
    int to = 0;
    int context = 0;
    uint64_t place = 0;  // of bytes, in both windows
    uint64_t word = 0;   // of signals; the next one is for INC
    std::array<Operation, kMost> operations;
    std::atomic<int> posted{0};  // what the watcher may look at
    int planned = 0;
    std::array<uint64_t, 2> before = {};  // the words, when the round began
    uint64_t wanted_bits = 0;
    uint64_t wanted_count = 0;
    uint64_t seen_bits = 0;  // the watcher's
    uint64_t seen_count = 0;
    std::vector<std::pair<int, void*>> requests;
  };

  absl::Status Make(size_t bytes, uint64_t flags, unsigned kind, RmaMemory** memory);
  void Plan(Stream* stream);
  size_t DrawSize(size_t left);
  absl::Status Post(Stream* stream);
  absl::Status Test(Stream* stream);
  absl::Status Move();
  void Watch();
  std::string Look(Stream* stream);
  std::string LookAt(const Stream& stream, int signal);
  std::string Check(const Stream& stream, int operation, const char* when);
  absl::Status GetSome();

  RmaLab* const lab_;
  const Shape shape_;
  Rng rng_;
  const Pattern pattern_;
  RmaMemory* source_ = nullptr;
  RmaMemory* window_ = nullptr;
  RmaMemory* signal_memory_ = nullptr;
  RmaMemory* gotten_ = nullptr;
  std::deque<Stream> streams_;
  uint64_t rounds_ = 0;
  uint64_t operations_ = 0;
  uint64_t signals_ = 0;
  std::atomic<bool> all_seen_{false};
  std::atomic<bool> stop_{false};
  std::string wrong_;  // the watcher's, until it has ended
};

}  // namespace tcpx
