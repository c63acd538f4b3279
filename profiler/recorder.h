// recorder.h: keeps the events of this process from their start until they are in the trace.
//
// Purpose: what NCCL's threads do is one short stay under a mutex; formatting and writing is the writer thread's
//          (trace_writer.h). A bounded number of slots holds what is under way and what waits to be written; without a
//          free one an event is not recorded, and counted. Another profiler's events have slots also while the trace
//          has none.
// Rules:   A handle names a slot and its generation, so that one that is used too late finds nothing: not in a later
//          recorder either, whose generations begin above those of all before it. NCCL ends a collective when it is
//          launched, and its operations begin later: a collective, a point-to-point or a group ends with the last of
//          its children, and is written once none has come for a second. With sampling, an event without a parent is
//          recorded every `sample` times, and children as their parents, also where the parent is another profiler's
//          only.
// Threads: any.
// Lifetime: between Start and End. Communicators are numbered; what is kept of one goes when all of it is written.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  as the writer's (trace_writer.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "profiler/event.h"
#include "profiler/trace_writer.h"
#include "profiler/tracks.h"

namespace tcpx {

// The sockets that a trace tells apart.
// Purpose: a descriptor's number is used again for other sockets; a trace shows each socket as a lane of its own.
// Threads: one at a time.
// Errors:  none; what can't be distinguished is "unknown".
class TracedLanes {
 public:
  // The socket that a descriptor number means at the moment.
  struct Lane {
    uint32_t number = 0;
    int64_t looked_ns = 0;
    std::string addresses;
  };

  const Lane& Of(int fd, int64_t now_ns);

 private:
  // Sockets that are distinguished; those of further descriptors are "unknown".
  static constexpr size_t kLanesMax = 8192;

  absl::flat_hash_map<int, Lane> lanes_;  // by descriptor number
  uint32_t seen_ = 0;
};

class Recorder {
 public:
  // Slots for events of the trace: about 25 MiB, made as they are needed. All are made before one is used again,
  // because children may begin long after their parent's end.
  static constexpr uint32_t kSlotsMax = 1 << 16;
  static constexpr uint32_t kSlotsMin = 1 << 12;
  // With those that only another profiler wants, or for which the trace had none.
  static constexpr uint32_t kAllSlotsMax = 4 * kSlotsMax;
  static constexpr int64_t kLingerNs = kSecond;

  struct Settings {
    std::string path;        // of the trace; empty: none is written
    uint64_t bytes_max = 0;  // of both its files
    int64_t sample = 1;      // every N-th event
    std::string process;     // its name in the trace
  };

  explicit Recorder(const Settings& settings);
  ~Recorder();

  // The number of another communicator; nothing of it begins after EndCommunicator.
  uint32_t AddCommunicator(const std::string& name);
  void EndCommunicator(uint32_t communicator);

  // Writes what is over and ends the trace; what comes afterwards is not written. Not by two threads at once.
  void EndTrace() { writer_.End(); }

  // A trace is written.
  bool records() const { return writer_.writes(); }

  // A handle, or null: there is no slot, or nobody needs one. `wanted`: for the trace; `chained`: another profiler will
  // want the handle, also where the trace has no slot.
  void* Start(uint32_t communicator, const EventFacts& facts, int64_t now_ns, bool wanted, bool chained);
  void Note(void* handle, int state, const ncclProfilerEventStateArgs_v5_t* args, int64_t now_ns);
  void Stop(void* handle, int64_t now_ns);

  // What another profiler calls the event of `handle`; null: nothing, or it is too old.
  void SetChained(void* handle, void* chained);
  void* Chained(void* handle);

  // Events for which there was no room.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  // The writer's: what is over by `now_ns`, and that it is in the file.
  TraceBatch TakeBatch(int64_t now_ns);
  void BatchWritten();

 private:
  enum class Slot : uint8_t { kFree, kOpen, kLingering, kDone };
  struct Entry {
    Event event;
    uint64_t generation = 0;
    void* chained = nullptr;
    uint32_t communicator = 0;
    Slot state = Slot::kFree;
    bool sampled = false;  // its family is in the trace, as far as the trace wants it
    bool recorded = false;
    uint32_t parent = kNone;  // whose end this one's moves
    int children = 0;         // under way
  };
  struct Communicator {
    std::string name;
    uint32_t under_way = 0;  // recorded events that are not over
    enum class State : uint8_t { kLives, kEnded, kGone } state = State::kLives;
  };
  static constexpr uint32_t kNone = ~0u;

  // Null: the handle is too old, or none.
  Entry* Find(void* handle) TCPX_REQUIRES(mutex_);
  // For the trace. False: counted.
  bool HasRoom() TCPX_REQUIRES(mutex_);
  uint32_t TakeSlot() TCPX_REQUIRES(mutex_);
  bool Sampled(uint32_t communicator, uint32_t type) TCPX_REQUIRES(mutex_);
  uint32_t TakeTrack(const Entry& entry) TCPX_REQUIRES(mutex_);
  void ChildStarts(Entry* entry) TCPX_REQUIRES(mutex_);
  void ChildStops(uint32_t parent, int64_t now_ns) TCPX_REQUIRES(mutex_);
  void Finish(uint32_t index) TCPX_REQUIRES(mutex_);
  void FinishLingering(int64_t now_ns) TCPX_REQUIRES(mutex_);
  // The rows of communicators that have ended: no further event belongs to them.
  std::vector<uint32_t> ForgetEnded() TCPX_REQUIRES(mutex_);

  const int64_t sample_;
  const uint64_t first_generation_;
  std::atomic<uint64_t> dropped_{0};

  Mutex mutex_;
  std::deque<Entry> slots_ TCPX_GUARDED_BY(mutex_);
  uint32_t recorded_ TCPX_GUARDED_BY(mutex_) = 0;           // slots that hold events of the trace
  std::deque<uint32_t> free_ TCPX_GUARDED_BY(mutex_);       // the one that was freed first, first
  std::deque<uint32_t> lingering_ TCPX_GUARDED_BY(mutex_);  // the one that stopped first, first
  std::vector<uint32_t> done_ TCPX_GUARDED_BY(mutex_);
  std::vector<uint32_t> writing_ TCPX_GUARDED_BY(mutex_);
  std::vector<Communicator> communicators_ TCPX_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, int64_t> seen_ TCPX_GUARDED_BY(mutex_);  // by communicator and type
  TracedLanes lanes_ TCPX_GUARDED_BY(mutex_);
  Tracks tracks_ TCPX_GUARDED_BY(mutex_);
  TraceWriter writer_;  // it begins at once: last of all
};

}  // namespace tcpx
