// supervisor.h: starts the workers of this machine and watches over them.
//
// Purpose: a plugin that crashes or hangs, wherever, ends the run within a bounded time and with the place named. The
//          supervisor itself never touches the plugin and has no thread; workers are forked before they have any.
// Threads: one, asleep but for a look every few milliseconds.
// Units:   seconds.
// Errors:  the exit code: 0 when every worker returned 0, else 1 with the reasons on stderr.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {

class Supervisor {
 public:
  Supervisor(SharedPage* page, int timeout_s) : page_(page), timeout_s_(timeout_s) {}
  // Ends what is left.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Forks; in the child runs `body`, writes its failure to the page and exits. Returns in the parent only.
  absl::Status Fork(int rank, const std::function<absl::Status()>& body);
  // Until all are gone. Returns the exit code of the program.
  int Watch();

 private:
  struct Worker {
    pid_t pid = -1;
    int rank = 0;
    bool running = false;
    uint64_t ticks = 0;
    std::string failure;    // empty: none
    int64_t failed_ns = 0;  // 0: by a signal
  };

  void Reap();
  void Conclude(Worker* worker, int wait_status);
  bool MadeProgress();
  void ReportHang();
  void KillRunning();
  bool AnyRunning() const;
  bool AnyFailed() const;
  void PrintFailures();

  SharedPage* const page_;
  const int timeout_s_;
  std::vector<Worker> workers_;
};

}  // namespace bench
}  // namespace tcpx
