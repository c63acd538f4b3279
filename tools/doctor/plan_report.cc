// How a plan is said.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/escape.h"
#include "tools/doctor/plan.h"

namespace tcpx {
namespace doctor {
namespace {

const char* PatternName(Pattern pattern) { return pattern == Pattern::kRing ? "ring" : "alltoall"; }

std::string Mib(int64_t bytes) { return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20)); }

void ReportSockets(const Plan& plan, Report* report) {
  const std::string lanes = plan.lanes_least == plan.lanes_most
                                ? Counted(plan.lanes_most, "lane")
                                : absl::StrCat(plan.lanes_most, " to ", plan.lanes_least, " lanes");
  report->Ok("socket", absl::StrFormat("%d: %d connections dialled and as many accepted, of %s; %d health "
                                       "sockets, %d listening",
                                       plan.sockets, plan.connections, lanes, plan.health, plan.listening));
  report->Ok("port", absl::StrFormat("%d to connect from towards one process, %d to listen on", plan.ports_to_a_peer,
                                     plan.listening));
  report->Ok("descriptor", absl::StrFormat("%d of the process that has most", plan.descriptors));
  report->Ok("health", absl::StrFormat("%d sockets, one for each direction between two processes", plan.health));
}

void ReportLimit(const PlanLimit& limit, bool first, Report* report) {
  if (!limit.known()) {
    return report->Ok("limit", absl::StrFormat("%s: none known; %d %s", limit.name, limit.needed, limit.of));
  }
  const std::string text =
      absl::StrFormat("%s%s: %d %s, of %d (%.3g %%)", limit.name, first ? ", which is reached first" : "", limit.needed,
                      limit.of, limit.allowed, 100 * limit.share());
  if (limit.share() <= 1) return report->Ok("limit", text);
  // These only slow down.
  if (limit.name == "somaxconn") return report->Note("limit", absl::StrCat(text, ": SYNs come again"), limit.fix);
  if (limit.name == "tcp_mem") return report->Note("limit", absl::StrCat(text, ": buffers shrink"), limit.fix);
  report->Problem("limit", text, limit.fix);
}

}  // namespace

void ReportPlan(const PlanJob& job, const Plan& plan, Report* report) {
  report->Ok("job",
             absl::StrFormat("%s of %s in a host, %s, %s; all figures are of one host", Counted(job.hosts, "host"),
                             Counted(job.ranks, "rank"), Counted(job.channels, "channel"), PatternName(job.pattern)));
  ReportSockets(plan, report);
  report->Ok("memory", absl::StrFormat("%s of the kernel's for idle sockets, %s in its buffers at most, %s of the "
                                       "plugin's",
                                       Mib(plan.kernel_bytes), Mib(plan.buffer_bytes), Mib(plan.plugin_bytes)));
  report->Ok("keepalive", absl::StrFormat("%.3g packets a second while idle", plan.keepalive_packets));
  report->Ok("connect", absl::StrFormat("%.3g s to connect all, with a free CPU for each rank", plan.connect_seconds));
  report->Ok("backlog", absl::StrFormat("%d at one listening socket, if all dial at once", plan.backlog));
  bool first = true;
  for (const PlanLimit& limit : plan.limits) {
    ReportLimit(limit, first, report);
    first = false;
  }
}

std::string PlanJson(const PlanJob& job, const Plan& plan) {
  std::vector<std::string> limits;
  for (const PlanLimit& limit : plan.limits) {
    limits.push_back(absl::StrFormat("{\"name\": %s, \"needed\": %d, \"allowed\": %d, \"fix\": %s}",
                                     JsonText(limit.name), limit.needed, limit.allowed, JsonText(limit.fix)));
  }
  return absl::StrCat(
      "\"plan\": {\"hosts\": ", job.hosts, ", \"ranks_per_host\": ", job.ranks, ", \"channels\": ", job.channels,
      ", \"pattern\": ", JsonText(PatternName(job.pattern)), ", \"connections\": ", plan.connections,
      ", \"lanes\": ", plan.lanes, ", \"sockets\": ", plan.sockets, ", \"health_sockets\": ", plan.health,
      ", \"listening\": ", plan.listening, ", \"ports_to_a_peer\": ", plan.ports_to_a_peer,
      ", \"descriptors\": ", plan.descriptors, ", \"backlog\": ", plan.backlog,
      ", \"kernel_bytes\": ", plan.kernel_bytes, ", \"buffer_bytes\": ", plan.buffer_bytes,
      ", \"plugin_bytes\": ", plan.plugin_bytes, ", \"keepalive_packets_per_second\": ", plan.keepalive_packets,
      ", \"connect_seconds\": ", plan.connect_seconds, ", \"limits\": [", absl::StrJoin(limits, ", "), "]}");
}

}  // namespace doctor
}  // namespace tcpx
