#include "tools/doctor/plan_host.h"

#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"

namespace tcpx {
namespace doctor {
namespace {

// The numbers of a sysctl; none where it can't be read.
std::vector<int64_t> Numbers(const Patient& patient, const std::string& path) {
  std::vector<int64_t> numbers;
  for (const std::string& word : ReadWords(patient, path)) {
    int64_t number = 0;
    if (absl::SimpleAtoi(word, &number)) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

PlanHost ReadPlanHost(const Patient& patient) {
  PlanHost host;
  host.options = patient.options;
  host.rtt_us = patient.command.rtt_us;
  if (patient.devices.count() > 0) host.nics = patient.devices.device(0).nics;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
    host.descriptors = static_cast<int64_t>(limit.rlim_max);
  }
  host.somaxconn = ReadNumber(patient, "/proc/sys/net/core/somaxconn", -1);
  const std::vector<int64_t> ports = Numbers(patient, "/proc/sys/net/ipv4/ip_local_port_range");
  if (ports.size() == 2) host.ports = ports[1] - ports[0] + 1;
  const std::vector<int64_t> pages = Numbers(patient, "/proc/sys/net/ipv4/tcp_mem");
  if (pages.size() == 3) host.tcp_bytes = pages[2] * sysconf(_SC_PAGESIZE);
  host.flows = ReadNumber(patient, "/proc/sys/net/netfilter/nf_conntrack_max", -1);
  return host;
}

}  // namespace doctor
}  // namespace tcpx
