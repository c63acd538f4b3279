// watchdog.h: ends a process that makes no progress, and says where it was.
//
// Purpose: calls into NCCL and CUDA block without a limit of their own when a peer or a transport hangs.
// Threads: one of its own, asleep. Enter and Tick: any thread.
// Units:   seconds.
// Errors:  after the timeout one line on stderr, then _exit(1): destructors could hang as well.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tcpx {
namespace nccl_bench {

class Watchdog {
 public:
  // `name` opens the line: "nccl_bench: rank 1".
  Watchdog(std::string name, int timeout_s);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Progress: the process is now at `place`.
  void Enter(std::string place);
  // Progress at the same place.
  void Tick();
  std::string place() const;

 private:
  void Watch();

  const std::string name_;
  const int timeout_s_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string place_ = "start";
  int64_t progress_ns_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace nccl_bench
}  // namespace tcpx
