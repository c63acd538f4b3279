// clock_notes.h: how far other processes' clocks are from ours, from who measures it to who writes the timeline.
//
// Purpose: the network plugin measures, the profiler writes; both are libraries of one process that know nothing of each
//          other. The notes lie in memory that has no name but the one of its descriptor, so that they go with the
//          process, however it ends, and nobody ever waits for a disk.
//
// Form:    lines of "SELF", or "SELF\tPEER\tAT\tOFFSET\tROUND_TRIP": processes by name; ours, and by how much the peer's
//          clock is ahead of ours, as of AT.
// Threads: Write by any; a reader by one at a time.
// Lifetime: notes stay as long as their writer.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  without memory for it there are no notes, and beyond kBytesMax no more.
// Source:  memfd_create(2), proc(5).
#ifndef TCPX_COMMON_CLOCK_NOTES_H_
#define TCPX_COMMON_CLOCK_NOTES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/fd.h"
#include "common/mutex.h"

namespace tcpx {

struct ClockNote {
  std::string self;
  std::string peer;  // empty: `self` is all that is said
  int64_t at_ns = 0;
  int64_t offset_ns = 0;
  int64_t round_trip_ns = 0;
};

class ClockNotes {
 public:
  static constexpr size_t kBytesMax = size_t{4} << 20;

  ClockNotes();

  // A name that no other process has, on this host or another.
  const std::string& self() const { return self_; }
  void Write(const std::string& peer, int64_t at_ns, int64_t offset_ns, int64_t round_trip_ns);

 private:
  void Append(const std::string& line);

  const std::string self_;
  const OwnedFd fd_;
  Mutex mutex_;
  size_t bytes_ TCPX_GUARDED_BY(mutex_) = 0;
};

// Follows the notes of this process, whoever writes them.
class ClockNotesReader {
 public:
  // What is new.
  std::vector<ClockNote> Read();

 private:
  void ReadFrom(int number, std::vector<ClockNote>* notes);

  std::map<uint64_t, size_t> read_;  // bytes, by inode
};

// False: nonsense.
bool ParseClockNote(absl::string_view line, ClockNote* note);

}  // namespace tcpx

#endif  // TCPX_COMMON_CLOCK_NOTES_H_
