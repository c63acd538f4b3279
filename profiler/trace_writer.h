// trace_writer.h: the thread that writes the trace: what the recorder has finished, and the clocks by which traces of
// several hosts are joined.
//
// Threads: End from any, not by two at once; the rest is its own.
// Lifetime: borrows the recorder, which is asked until End has returned.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  a trace that can't be written ends with one WARN, and all else goes on.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/clock.h"
#include "common/clock_notes.h"
#include "common/fd.h"
#include "profiler/event.h"
#include "profiler/trace_file.h"
#include "profiler/tracks.h"

namespace tcpx {

class Recorder;

struct TraceBatch {
  std::vector<NewTrack> tracks;
  std::vector<const Event*> events;  // these stay as they are until BatchWritten
  std::vector<uint32_t> gone;        // rows without further events
};

class TraceWriter {
 public:
  // Starts, unless `path` is empty. `process`: its name in the trace.
  TraceWriter(const std::string& path, uint64_t bytes_max, const std::string& process, Recorder* recorder);
  ~TraceWriter() { End(); }

  // Writes what is over, and ends the trace.
  void End();
  bool writes() const { return thread_.joinable(); }

 private:
  // Peers whose clock was measured: the latest measures of at most this many are in each file.
  static constexpr size_t kPeersMax = 4096;

  void Run();
  void WriteRound(int64_t now_ns);
  void WriteClock();
  void WriteClockNotes(bool last);
  // A file has to be joined to others' also where it is full before the next measure comes.
  std::vector<std::string> LatestClocks();
  // Once: that the trace has ended.
  void LogEnd();

  Recorder* const recorder_;
  TraceFile file_;
  bool logged_ = false;
  int64_t clock_ns_ = 0;
  ClockNotesReader notes_;
  absl::flat_hash_map<std::string, ClockNote> measures_;  // the latest, by peer
  int64_t notes_ns_ = 0;                                  // when they were read last
  int64_t notes_every_ns_ = kSecond;
  OwnedFd wake_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace tcpx
