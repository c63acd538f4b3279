// cpu_shortage.h: whether this process' threads get the CPU that they want.
//
// Purpose: a rank without CPU looks to its peers like a slow network. For each thread the kernel counts how long it
//          ran, and how long it was ready to run but did not. It adds the latter only when the thread runs again; so,
//          for a thread that is ready at two looks and has not run in between, this class adds the time since then. A
//          thread is short if it wanted a CPU for most of the time between two looks, as a polling thread does, and got
//          it for less than half of that. Only our own threads and those that call us count.
// Threads: one at a time: the reactor.
// Units:   nanoseconds, percent.
// Errors:  where the kernel does not tell (no CONFIG_SCHEDSTATS), nobody is short.
// Source:  /proc/PID/task/TID/schedstat, Linux 2.6.23, and stat.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tcpx {

class CpuShortage {
 public:
  explicit CpuShortage(std::string tasks = "/proc/self/task/") : tasks_(std::move(tasks)) {}

  // A thread that calls the plugin; 0: none is known. It counts with our own until it ends.
  void NoteCaller(int id) {
    if (id != 0) callers_.insert(id);
  }
  // How much of the time between the two latest looks the thread had to wait that is short most; 0: none is, or the
  // look before was long ago. Looks again when the latest is `every_ns` old.
  int Percent(int64_t now_ns, int64_t every_ns);
  // As of the latest look.
  int percent() const { return percent_; }
  // True once, until there was a look that found nobody short.
  bool FirstToLog() { return !std::exchange(logged_, true); }

 private:
  struct Times {
    uint64_t cpu_ns = 0;
    uint64_t waited_ns = 0;
    uint64_t slices = 0;  // how often it has begun to run
    bool ready = false;   // or runs
  };

  bool ReadThread(int id, std::map<int, Times>* threads) const;
  std::map<int, Times> Read();

  std::string tasks_;
  int64_t looked_ns_ = 0;
  std::map<int, Times> threads_;
  std::set<int> callers_;
  std::set<int> ours_;
  int looks_ = 0;  // since ours_ was found
  int percent_ = 0;
  bool logged_ = false;
};

}  // namespace tcpx
