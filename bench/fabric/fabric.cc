// fabric: simulates jobs on fabrics of 8 to thousands of hosts, and says what the autopilot makes of them.
#include <stdio.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/command_line/option_parser.h"
#include "bench/fabric/fabric_report.h"
#include "bench/net_bench/report_page.h"

namespace tcpx {
namespace fabric {
namespace {

constexpr char kUsage[] = R"(usage: fabric [options]

  --hosts N,N,...    default 8,64
  --scenario NAME    only this one; "list" prints their names
  --seconds N        simulated for the autopilot (default 60)
  --fixed-seconds N  for those that decide nothing (default 12)
  --seed N           default 1
  --buffer-mb N      bytes that wait for a link at the most (default 16); 0: no lane sees a queue
  --tick-ms N        from one step of the simulation to the next (default 20)
  --report FILE      writes a page with tables and plots

exit code: 0 done, whether or not all bars hold; 2 wrong usage, or FILE can't be written
)";

struct Options {
  std::vector<int> hosts = {8, 64};
  std::string scenario;
  std::string report;
  int seconds = 60;
  int fixed_seconds = 12;
  int tick_ms = 20;
  int buffer_mb = static_cast<int>(kBuffer / 1e6);
  uint64_t seed = 1;
  bool help = false;
};

absl::Status Parse(const std::vector<std::string>& arguments, Options* options) {
  bench::OptionParser parser;
  parser.Numbers("--hosts", &options->hosts, 8, 8192);
  parser.Text("--scenario", &options->scenario);
  parser.Text("--report", &options->report);
  parser.Number("--seconds", &options->seconds, 15, 100000);
  parser.Number("--fixed-seconds", &options->fixed_seconds, 4, 100000);
  parser.Number("--buffer-mb", &options->buffer_mb, 0, 1000);
  parser.Number("--tick-ms", &options->tick_ms, 1, 20);
  parser.Number("--seed", &options->seed);
  parser.Flag("--help", &options->help);
  return parser.Parse(arguments);
}

std::vector<Run> RunAll(const Options& options) {
  const Length length{static_cast<double>(options.seconds), static_cast<double>(options.fixed_seconds), options.seed,
                      options.tick_ms / 1000.0};
  std::vector<Run> runs;
  for (int hosts : options.hosts) {
    for (const Scenario& scenario : Scenarios(hosts, options.buffer_mb * 1e6)) {
      if (options.scenario == "list") printf("%-20s %s\n", scenario.name.c_str(), scenario.what.c_str());
      if (!options.scenario.empty() && options.scenario != scenario.name) continue;
      Run run{scenario, {}};
      for (const Decider& decider : Deciders()) run.outcomes.push_back(RunScenario(scenario, decider, length));
      fputs(TextReport(run).c_str(), stdout);
      fflush(stdout);
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

int Main(const std::vector<std::string>& arguments) {
  Options options;
  if (const absl::Status status = Parse(arguments, &options); !status.ok()) {
    fprintf(stderr, "fabric: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  if (options.help) return fputs(kUsage, stdout) < 0 ? 2 : 0;
  const std::vector<Run> runs = RunAll(options);
  if (options.report.empty()) return 0;
  const std::string command = absl::StrCat("fabric ", absl::StrJoin(arguments, " "), "; seed ", options.seed);
  std::ofstream file(options.report);
  file << bench::HtmlPage({PageData(runs, command)}, "") << std::flush;
  if (file) return 0;
  fprintf(stderr, "fabric: can't write %s\n", options.report.c_str());
  return 2;
}

}  // namespace
}  // namespace fabric
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::fabric::Main(std::vector<std::string>(argv + 1, argv + argc)); }
