// gpu_writer.h: what one-sided transfers write into a GPU's memory by themselves: short data and signals, in one order.
//
// Purpose: one stream takes all that several groups write into the memory of one GPU context. The write of a signal is
//          given to it after the data that the signal covers, so that a GPU which sees the signal sees the data. Short
//          data goes through a ring of pinned memory. A signal is an addition: the word is read, and written whole; of
//          words that nobody else writes, the value is known after the first time. Additions are written in the order
//          in which they came. With GDRCopy the CPU writes by itself where that keeps the order: what the stream was
//          given before is in the memory.
//
//   number = writer.last(); ... writer.Poll() ... writer.Reached(number)
// Threads: any. Await waits, without the lock: other groups go on meanwhile.
// Lifetime: the hub's. Memory that it is given is in use until it is reached.
// Units:   bytes.
// Errors:  kAborted with the driver's text, or that the GPU carries out nothing; the first one sticks.
// Source:  CUDA Driver API, cuStreamWriteValue64: a barrier for all earlier writes comes before it unless forbidden.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"
#include "net_socket/gpu/gdr_copy.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/gpu/gpu_pool.h"

namespace tcpx {

class GpuWriter {
 public:
  // kFailedPrecondition where the driver can't write words. `gdr`: null: not used.
  static absl::StatusOr<std::unique_ptr<GpuWriter>> Open(GpuPool* pool, std::unique_ptr<GdrCopy> gdr = nullptr);
  ~GpuWriter();

  CuContext context() const { return pool_->place().context; }

  // Copies at most 16 KiB, which may change afterwards. False in *room: none in the ring until some poll.
  absl::Status Put(char* to, absl::string_view bytes, bool* room);
  // Between any two places that the GPU can reach.
  absl::Status Copy(char* to, const char* from, size_t bytes);
  // To the aligned word at `at`. `ours`: nobody else writes it until EndRegion.
  absl::Status Add(char* at, uint64_t add, bool ours);
  // False: too many additions wait, and a peer's next ones should wait with the peer.
  bool MayAdd() const;
  // It has had an error: no group should begin to use it.
  bool failed() const {
    MutexLock lock(mutex_);
    return !status_.ok();
  }

  // Counts what was given, by all groups.
  uint64_t last() const {
    MutexLock lock(mutex_);
    return last_;
  }
  // All up to that number is in the memory.
  bool Reached(uint64_t number) const {
    MutexLock lock(mutex_);
    return done_.number >= number;
  }
  // *steps: how much the stream has carried out.
  absl::Status Poll(uint64_t* steps);
  // Returns once all that was given before is in the memory, or never will be. For deregMr and closing only. An error:
  // the GPU has not carried it out within the pool's patience, and may still; nobody waits for that again.
  absl::Status Await();
  // Memory is registered: what was known of words there is of memory that was there before.
  void BeginRegion(const char* data, size_t bytes);
  // And deregistered: words there may be anybody's from now on. After Await.
  void EndRegion(const char* data, size_t bytes);

 private:
  struct Addition {
    char* at;
    uint64_t add;
    bool ours;
    uint64_t number;
  };
  // A place in the stream, and what is in the memory there.
  struct Mark {
    uint64_t steps = 0;
    uint64_t number = 0;
    uint64_t ring = 0;
  };

  GpuWriter(GpuPool* pool, GpuSlot* slot, std::unique_ptr<GdrCopy> gdr)
      : pool_(pool), slot_(slot), gdr_(std::move(gdr)) {}
  const GpuApi& api() const { return pool_->driver().api(); }
  absl::Status Enter(const GpuScope& scope) TCPX_REQUIRES(mutex_);
  // What a call gave that put something into the stream.
  absl::Status Step(int result, const char* call) TCPX_REQUIRES(mutex_);
  absl::Status Move() TCPX_REQUIRES(mutex_);
  // Where the CPU may write now; nowhere: the stream has to.
  GdrCopy::Place DirectPlace(const char* at, size_t bytes) const TCPX_REQUIRES(mutex_);
  void Forget(const char* data, size_t bytes) TCPX_REQUIRES(mutex_);
  // Nothing that was given up to number `until` is under way.
  bool Over(uint64_t until);
  absl::Status BeginAdditions() TCPX_REQUIRES(mutex_);
  absl::Status EndAdditions() TCPX_REQUIRES(mutex_);
  // Null: no room.
  char* Reserve(size_t bytes) TCPX_REQUIRES(mutex_);

  GpuPool* const pool_;
  GpuSlot* const slot_;  // words that are read, then the ring; its event is the mark's
  CuStream stream_ = nullptr;
  std::atomic<bool> stuck_{false};

  mutable Mutex mutex_;
  const std::unique_ptr<GdrCopy> gdr_ TCPX_PT_GUARDED_BY(mutex_);
  absl::Status status_ TCPX_GUARDED_BY(mutex_);
  uint64_t last_ TCPX_GUARDED_BY(mutex_) = 0;
  uint64_t steps_ TCPX_GUARDED_BY(mutex_) = 0;      // given to the stream
  uint64_t ring_head_ TCPX_GUARDED_BY(mutex_) = 0;  // grows for ever
  bool marked_ TCPX_GUARDED_BY(mutex_) = false;     // the event is on its way to `mark_`
  Mark mark_ TCPX_GUARDED_BY(mutex_);
  Mark done_ TCPX_GUARDED_BY(mutex_);
  std::deque<Addition> additions_ TCPX_GUARDED_BY(mutex_);               // not written
  size_t reading_ TCPX_GUARDED_BY(mutex_) = 0;                           // of the first: their words are on the way
  uint64_t read_at_ TCPX_GUARDED_BY(mutex_) = 0;                         // the step that brings them
  absl::flat_hash_map<char*, uint64_t*> words_ TCPX_GUARDED_BY(mutex_);  // their values, here or on their way
  absl::flat_hash_map<char*, uint64_t> known_ TCPX_GUARDED_BY(mutex_);   // words that only this writes
};

}  // namespace tcpx
