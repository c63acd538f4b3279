// stats_file.h: the file for Prometheus, one a process, that is there exactly while the process has connections.
//
// Purpose: `tcpx-HOST-PID.prom`, replaced as a whole, so that a reader (node_exporter's textfile collector) never sees
//          a half of one. Files that dead processes left are removed.
// Threads: one at a time. Errors: one WARN for the first failure; it is tried again at each write.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net_socket/stats/snapshot.h"

namespace tcpx {

class StatsFile {
 public:
  // Ages of files that are removed: of a process that is seen to be dead, and of any other one. Processes of other
  // hosts and PID namespaces can't be seen, and a PID may be another process's by now; a living one writes every 10 s.
  static constexpr int64_t kStaleSeconds = 30;
  static constexpr int64_t kStaleElsewhereSeconds = 600;

  // *warned: a StatsFile of this process has already logged a failure.
  StatsFile(std::string dir, const ProcessNumbers& process, bool* warned);
  // Removes the file.
  ~StatsFile();
  StatsFile(const StatsFile&) = delete;
  StatsFile& operator=(const StatsFile&) = delete;

  void Write(absl::string_view text);
  void RemoveStale();
  const std::string& path() const { return path_; }

 private:
  absl::Status Replace(absl::string_view text);
  // Seconds from which on a file is what a dead process left; 0: never.
  int64_t StaleAfter(absl::string_view name) const;
  int64_t FolderSeconds() const;

  const std::string dir_;
  const std::string host_;
  const std::string mark_;
  std::string path_;
  std::string temporary_;
  bool* const warned_;
  bool fails_ = false;
};

}  // namespace tcpx
