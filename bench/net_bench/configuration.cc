#include "bench/net_bench/configuration.h"

#include "absl/strings/str_cat.h"
#include "bench/net_bench/cpus.h"
#include "bench/net_bench/plan.h"
#include "bench/net_bench/plugin_log.h"

namespace tcpx {
namespace bench {
namespace {

std::string Drivers(const Options& options, const WorkerPlace& place) {
  std::string text = "not pinned";
  if (place.cpu >= 0 && place.same_machine) {
    text = absl::StrCat("pinned to CPUs ", place.cpu, " and ", place.peer_cpu);
  } else if (place.cpu >= 0) {
    text = absl::StrCat("pinned to CPU ", place.cpu);
  }
  if (options.role == Role::kConnect) absl::StrAppend(&text, ", rank 1 on ", options.host);
  if (place.priority) absl::StrAppend(&text, ", priority raised");
  if (options.yield) absl::StrAppend(&text, ", yielding");
  if (options.one_isend_per_pass) absl::StrAppend(&text, ", one isend per pass");
  if (options.profile) absl::StrAppend(&text, ", a profiler counts events");
  if (options.check) absl::StrAppend(&text, ", every byte checked (slower)");
  return text;
}

std::string Sampling(const Options& options) {
  const std::string messages =
      options.iterations > 0 ? absl::StrCat(options.iterations, " messages") : absl::StrCat(options.sample_ms, " ms");
  return absl::StrCat(options.samples, " samples of ", messages, " per cell, window ", options.window, ", seed ",
                      options.seed, "; ? marks a ratio of fewer than ", kVerdictSamples);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Configuration(const Options& options, const WorkerPlace& place,
                                                               const std::string& plugin, const std::string& vs,
                                                               const std::string& raw_congestion) {
  std::vector<std::pair<std::string, std::string>> lines;
  if (!options.note.empty()) lines.emplace_back("note", options.note);
  if (!plugin.empty()) {
    lines.emplace_back("plugin", options.plugin);
    lines.emplace_back("device", plugin);
    if (options.traffic_class >= 0) lines.emplace_back("traffic class", absl::StrCat(options.traffic_class));
    for (const std::string& line : PluginConfigurationLines()) lines.emplace_back("it says", line);
  }
  if (!vs.empty()) lines.emplace_back("vs", absl::StrCat(options.vs, ": ", vs));
  lines.emplace_back("machine", absl::StrCat(CpuModel(), ", ", place.usable_cpus, " usable CPUs, ", KernelVersion()));
  lines.emplace_back("drivers", Drivers(options, place));
  const std::string raw = raw_congestion.empty() ? "" : absl::StrCat(", bare sockets ", raw_congestion);
  lines.emplace_back("congestion", absl::StrCat("system default ", DefaultCongestion(), raw));
  lines.emplace_back("sampling", Sampling(options));
  return lines;
}

}  // namespace bench
}  // namespace tcpx
