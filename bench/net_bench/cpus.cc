#include "bench/net_bench/cpus.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/cpu_facts.h"

namespace tcpx {
namespace bench {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

}  // namespace

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void RunOn(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  if (!cpus.empty()) sched_setaffinity(0, sizeof(set), &set);
}

bool RaisePriority() {
  setsid();
  std::ofstream("/proc/self/autogroup") << "-20";
  return setpriority(PRIO_PROCESS, 0, -20) == 0;
}

std::vector<int> SiblingsOf(int cpu) {
  const std::string list =
      FirstLine(absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
  absl::StatusOr<std::vector<int>> siblings = ParseCpuList(list);
  return siblings.ok() ? *siblings : std::vector<int>{cpu};
}

std::pair<int, int> ChoosePair(const std::vector<int>& allowed, const std::function<std::vector<int>(int)>& siblings) {
  if (allowed.size() < 2) return {-1, -1};
  const std::vector<int> same_core = siblings(allowed[0]);
  for (size_t i = 1; i < allowed.size(); ++i) {
    const bool other_core = std::find(same_core.begin(), same_core.end(), allowed[i]) == same_core.end();
    if (other_core) return {allowed[0], allowed[i]};
  }
  return {allowed[0], allowed[1]};
}

std::string KernelVersion() {
  utsname name = {};
  if (uname(&name) != 0) return "";
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

std::string DefaultCongestion() { return FirstLine("/proc/sys/net/ipv4/tcp_congestion_control"); }

}  // namespace bench
}  // namespace tcpx
