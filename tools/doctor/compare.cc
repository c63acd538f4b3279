// What the parameters of two hosts have to do with each other.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/params.h"
#include "tools/doctor/between.h"

namespace tcpx {
namespace doctor {
namespace {

// Those that name things of one host, or where this host writes to.
bool IsOfOneHost(absl::string_view name) {
  constexpr absl::string_view kNames[] = {
      "NCCL_SOCKET_IFNAME", "NCCL_COMM_ID",      "TCPX_SPEED_MBPS",   "TCPX_FUSE",          "TCPX_CPUS",
      "TCPX_SECRET_FILE",   "TCPX_STATS",        "TCPX_STATS_DIR",    "TCPX_STATS_SOCKET",  "TCPX_STATS_LANES",
      "TCPX_TRACE_DIR",     "TCPX_TRACE_EVENTS", "TCPX_TRACE_SAMPLE", "TCPX_PROFILER_CHAIN"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::string ValueAt(const PeerFacts& facts, const Parameter& parameter) {
  const auto found = facts.parameters.find(parameter.name);
  return found == facts.parameters.end() ? DefaultText(parameter) : found->second;
}

}  // namespace

bool CompareParameters(const PeerFacts& here, const PeerFacts& there, Report* report) {
  std::vector<std::string> others;
  bool fits = true;
  for (const Parameter& parameter : Parameters()) {
    const std::string own = ValueAt(here, parameter);
    const std::string other = ValueAt(there, parameter);
    if (own == other || IsOfOneHost(parameter.name)) continue;
    const std::string text = absl::StrCat(parameter.name, " is ", own, " here and ", other, " there");
    if (parameter.name == absl::string_view("TCPX_ENCRYPT")) {
      report->Problem("variable", text + ": they would refuse each other",
                      "set TCPX_ENCRYPT to the same value on both hosts");
      fits = false;
    } else {
      others.push_back(text);
    }
  }
  if (!others.empty()) {
    report->Note("variable", absl::StrCat("the hosts' parameters differ: ", absl::StrJoin(others, "; ")),
                 "set them alike on all hosts, for example in /etc/nccl.conf");
  } else if (fits) {
    report->Ok("variable", "both hosts have the same parameters");
  }
  return fits;
}

}  // namespace doctor
}  // namespace tcpx
