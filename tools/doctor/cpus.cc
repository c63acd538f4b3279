// How many CPUs there are for each rank, and what the plugin makes of them.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/cpu_facts.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

std::string ListText(const std::vector<int>& cpus) { return cpus.empty() ? "unknown" : FormatCpuList(cpus); }

std::string FactsText(const CpuFacts& facts) {
  const std::string quota = facts.quota_cpus > 0 ? absl::StrFormat("%.2f CPUs", facts.quota_cpus) : "none";
  return absl::StrCat(facts.has_cpuset ? "cpuset " : "no cpuset, online ", ListText(facts.container_cpus),
                      ", affinity ", ListText(facts.process_cpus), ", quota ", quota, ", ",
                      Counted(facts.ranks_on_host, "rank"), " on this host (", facts.ranks_source, ")");
}

std::string ModeText(const Patient& patient) {
  const ThreadPlan& plan = patient.threads;
  if (plan.caller_driven())
    return absl::StrCat("mode caller-driven (", plan.reason, "): NCCL's own thread moves the bytes");
  std::vector<std::string> places;
  for (const ThreadPlace& place : plan.places) {
    const std::string text = place.cpus.empty() ? "anywhere" : FormatCpuList(place.cpus);
    if (places.empty() || places.back() != text) places.push_back(text);
  }
  return absl::StrCat("mode pool of ", Counted(plan.threads, "progress thread"), " (", plan.reason, "), on CPUs ",
                      absl::StrJoin(places, " and "));
}

// A mask without a CPU of the card's node: each byte crosses the sockets.
void CheckNodes(const Patient& patient, Report* report) {
  const CpuFacts& facts = patient.cpu_facts;
  for (int i = 0; i < patient.devices.count(); ++i) {
    const Nic& nic = patient.devices.device(i).first();
    const int node = nic.hardware.numa_node;
    if (node < 0 || node >= static_cast<int>(facts.node_cpus.size()) || facts.process_cpus.empty()) continue;
    const std::vector<int>& near = facts.node_cpus[static_cast<size_t>(node)];
    if (near.empty() || !CommonCpus(near, facts.process_cpus).empty()) continue;
    report->Note("cpu", absl::StrCat("none of this process's CPUs is on NUMA node ", node, " of ", nic.interface.name),
                 absl::StrCat("numactl --cpunodebind=", node, ", or the launcher's binding by NIC"));
  }
}

}  // namespace

void CheckCpus(const Patient& patient, Report* report) {
  const CpuFacts& facts = patient.cpu_facts;
  report->Ok("cpu", FactsText(facts));
  report->Ok("cpu", ModeText(patient));
  if (facts.ranks_source == "assumed") {
    report->Note("cpu", "no launcher says how many ranks this host has: one is assumed",
                 "tcpx_doctor --ranks N; in the job LOCAL_WORLD_SIZE=N, which torchrun sets");
  }
  if (!patient.threads.warning.empty()) {
    report->Problem("cpu", patient.threads.warning, "correct TCPX_CPUS or TCPX_THREADS (docs/cpus.md)");
  }
  const bool scarce = patient.threads.caller_driven() && patient.options.threads < 0;
  if (scarce) {
    report->Note(
        "cpu",
        absl::StrCat("too few CPUs for progress threads: large messages are bounded by NCCL's one thread for each GPU"),
        absl::StrCat("give the container ", 3 * facts.ranks_on_host * patient.command.gpus,
                     " CPUs or more (docs/cpus.md), or start fewer ranks"));
  }
  CheckNodes(patient, report);
}

}  // namespace doctor
}  // namespace tcpx
