// clock_notes.h: how far other processes' clocks are from ours: the plugin measures it, for the profiler's timeline.
//
// Purpose: the network plugin measures, the profiler writes; both are libraries of one process that know nothing of
//          each other. The notes lie in memory that has no name but the one of its descriptor, so that they go with the
//          process, however it ends, and nobody ever waits for a disk. They lie in a ring: however long the job runs,
//          the latest are there.
// Form:    a ClockNotesHead, and after it a ring of kRingNotes StoredClockNotes. The memory's name changes with the
//          form: the two libraries may be of different versions.
// Threads: Write by any; a reader by one at a time.
// Lifetime: the writer's, and as long as a reader holds them. A reader that has found a writer holds on to it, and
//          looks through the process's descriptors only where it knows of none, and each kScanEvery reads.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  without memory for it there are no notes: one WARN. What a slow reader has not read is overwritten.
// Source:  memfd_create(2), proc(5).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/fd.h"
#include "common/mutex.h"

namespace tcpx {

struct ClockNote {
  std::string self;
  std::string peer;  // empty: `self` is all that is said
  int64_t at_ns = 0;
  int64_t offset_ns = 0;  // by how much the peer's clock is ahead of ours
  int64_t round_trip_ns = 0;
};

// 104: the longest name that a process gives itself is shorter (HOST_NAME_MAX is 64).
inline constexpr size_t kClockNameBytes = 104;

struct ClockNotesHead {
  uint64_t written = 0;  // notes, ever
  uint64_t again = 0;    // the same: a reader in the middle of a write sees them differ
  uint64_t over = 0;     // 1: the writer is gone
  char self[kClockNameBytes] = "";
};

struct StoredClockNote {
  char peer[kClockNameBytes] = "";
  int64_t at_ns = 0;
  int64_t offset_ns = 0;
  int64_t round_trip_ns = 0;
};

class ClockNotes {
 public:
  static constexpr uint64_t kRingNotes = 8192;

  ClockNotes();
  ~ClockNotes();

  // A name that no other process has, on this host or another.
  const std::string& self() const { return self_; }
  // Not for a peer without a name, or with one that is too long to be a process's.
  void Write(const std::string& peer, int64_t at_ns, int64_t offset_ns, int64_t round_trip_ns);

 private:
  bool WriteHead(bool over) TCPX_REQUIRES(mutex_);

  const std::string self_;
  const OwnedFd fd_;
  Mutex mutex_;
  uint64_t written_ TCPX_GUARDED_BY(mutex_) = 0;
};

// Follows the notes of this process, from any writer.
class ClockNotesReader {
 public:
  static constexpr int kScanEvery = 32;

  // What is new.
  std::vector<ClockNote> Read();
  // How often it has looked through all descriptors.
  int scans() const { return scans_; }

 private:
  struct Writer {
    ino_t inode = 0;
    OwnedFd fd;
    uint64_t read = 0;  // notes
    bool named = false;
    bool over = false;
  };

  void Scan();
  void Take(int number);
  static void ReadFrom(Writer* writer, std::vector<ClockNote>* notes);

  std::vector<Writer> writers_;
  int reads_ = 0;  // since the latest scan
  int scans_ = 0;
};

}  // namespace tcpx
