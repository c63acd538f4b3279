// cpus.h: which CPUs the drivers run on, and what this machine says of itself.
//
// Threads: affinity is the calling thread's.
// Errors:  what can't be read is empty or left out.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tcpx {
namespace bench {

// The calling thread's affinity mask.
std::vector<int> AllowedCpus();
// Best effort: a CPU that went away leaves the thread where it is.
void RunOn(const std::vector<int>& cpus);

// Asks for the highest priority that is not real-time, for this thread and those it will make. Where the kernel shares
// CPUs out by session (sched_autogroup, sched(7)) the process becomes a session of its own first. False without the
// right.
bool RaisePriority();

// Hardware threads of the core of `cpu`, itself included (/sys/devices/system/cpu).
std::vector<int> SiblingsOf(int cpu);

// Two CPUs of different cores where there are two, else of one core; {-1, -1} when fewer than two are allowed.
std::pair<int, int> ChoosePair(const std::vector<int>& allowed,
                               const std::function<std::vector<int>(int)>& siblings = SiblingsOf);

std::string KernelVersion();
std::string CpuModel();
// The system's default congestion control.
std::string DefaultCongestion();

}  // namespace bench
}  // namespace tcpx
