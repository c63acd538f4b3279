// thread_times.h: how long threads of this process ran, and how long they were ready and had no CPU.
//
// Threads: one at a time. Units: nanoseconds of each thread's life.
// Tid:     the kernel gives it to another thread once a thread has ended: one that counts less than before is another.
// Errors:  a kernel without schedstats (CONFIG_SCHEDSTATS) tells nothing: no thread is there.
// Source:  /proc/PID/task/TID/schedstat, Linux 2.6.23: time on the CPU, time waiting for one, time slices.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "net_socket/stats/numbers.h"

namespace tcpx {

struct ThreadTimes : ThreadUse {
  int id = 0;        // 0: of all that have ended
  std::string name;  // "tcpx-io-0", "tcpx-house", "tcpx-stats"; NCCL's are "nccl"
  ThreadUse before;  // at the look before
};

class ThreadWatch {
 public:
  explicit ThreadWatch(std::string tasks = "/proc/self/task/") : tasks_(std::move(tasks)) {}

  // A look at our own threads and at `callers`. Which are ours is found out anew at most every `list_every` looks.
  void Look(const std::set<int>& callers, int list_every = 10);
  const std::map<int, ThreadTimes>& threads() const { return threads_; }
  // By name, what those that have ended had used when they were last seen: sums don't fall by their end.
  const std::map<std::string, ThreadTimes>& ended() const { return ended_; }
  // What a connection's threads did between the two latest looks: the caller, or the busiest progress thread if that
  // did more. kUseUnknown: the caller was not looked at.
  ThreadUse Use(int caller) const;

 private:
  void List();
  std::string NameOf(int id) const;
  // False: the thread has ended. If its file can't be read just now (no descriptor is free), nothing changes.
  bool Read(ThreadTimes* thread);
  void End(const ThreadTimes& thread);

  std::string tasks_;
  std::map<int, ThreadTimes> threads_;
  std::map<std::string, ThreadTimes> ended_;
  int looks_ = 0;
};

}  // namespace tcpx
