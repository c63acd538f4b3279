// trace_file.h: a timeline that grows while the process runs, in the JSON form that Perfetto reads, and its lines.
//
// Purpose: an array of events, a line each; one that ends early, because its process was killed, can be read too. When
//          half of the allowed bytes are used the file becomes NAME.older.json, in place of the one before it, and
//          another one begins: the latest part is always there.
// Threads: one at a time; lines: any.
// Units:   bytes; in a line microseconds with three decimals, as the format has it.
// Errors:  a folder in which somebody else could replace the file is refused. The first write or rename that fails ends
//          it; status() says why. Nothing is reported twice.
// Source:  "Trace Event Format" of the Chromium project: JSON array format, phases X, M, i.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/clock_notes.h"
#include "common/fd.h"
#include "profiler/event.h"

namespace tcpx {

class TraceFile {
 public:
  TraceFile(std::string path, uint64_t bytes_max) : path_(std::move(path)), bytes_max_(bytes_max) {}
  ~TraceFile() { Close(); }

  absl::Status Open();
  // Whole lines, each an event without a comma.
  void Append(absl::string_view line);
  // One that is at the head of each file that follows, too, until `row` is forgotten, as long as all such lines fit
  // into a quarter of the allowed bytes. Row 0 is the whole process.
  void AppendName(absl::string_view line, uint32_t row);
  void Forget(uint32_t row);
  // To the kernel.
  void Flush();
  void Close();

  const absl::Status& status() const { return status_; }
  std::string older_path() const;
  // Lines for the head of each file that follows, as they are then, after the names: an eighth of the allowed bytes at
  // most.
  using Head = std::function<std::vector<std::string>()>;
  void SetHead(Head head) { latest_ = std::move(head); }

 private:
  void Rotate();
  // Begins a file that is not the first.
  void WriteHead();
  void Write(absl::string_view text);

  const std::string path_;
  const uint64_t bytes_max_;
  absl::Status status_;
  OwnedFd fd_;
  uint64_t bytes_ = 0;                     // in the file
  bool first_ = true;                      // no event is in it yet
  std::map<uint32_t, std::string> names_;  // by row; what is in each file
  size_t names_bytes_ = 0;
  Head latest_;
  std::string waiting_;
};

// The event, and within it what a step waited for.
void AppendEvent(const Event& event, int pid, TraceFile* file);
// A row's name, or the process's (track 0).
std::string NameLine(const char* what, const std::string& name, int pid, uint32_t track);
// A moment of the whole process with numbers: {"realtime_ns", 1}.
std::string MomentLine(const char* name, int64_t at_ns, int pid, const char* key, int64_t value);
// What this process is called in other processes' measures of its clock, as of `now_ns`; or one of its own.
std::string ClockNoteLine(const ClockNote& note, int64_t now_ns, int pid);

}  // namespace tcpx
