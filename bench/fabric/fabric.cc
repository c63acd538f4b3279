// fabric: simulates jobs on fabrics of 8 to thousands of hosts, and says what the autopilot makes of them.
#include <stdio.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/command_line/option_parser.h"
#include "bench/fabric/fabric_report.h"
#include "bench/fabric/svg_plots.h"
#include "bench/fabric/table.h"
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
  --seeds N          so many, from --seed on (default 1)
  --brief            only the autopilot, fixed 1, 8 and 16 lanes, and perfect
                     spreading
  --table            then prints all as a table; if there are several seeds, with
                     the least and the most
  --buffer-mb N      bytes that wait for a link at the most (default 16); 0: no
                     lane sees a queue
  --tick-ms N        from one step of the simulation to the next (default 20)
  --report FILE      writes a page with tables and plots
  --svg FILE         writes a picture: rates and dials over time

exit code: 0 done, whether or not all bars hold; 2 wrong usage, or FILE can't be
written
)";

struct Options {
  std::vector<int> hosts = {8, 64};
  std::string scenario;
  std::string report;
  std::string svg;
  int seeds = 1;
  int seconds = 60;
  int fixed_seconds = 12;
  int tick_ms = 20;
  int buffer_mb = static_cast<int>(kBuffer / 1e6);
  uint64_t seed = 1;
  bool brief = false;
  bool table = false;
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
  parser.Number("--seeds", &options->seeds, 1, 1000);
  parser.Flag("--brief", &options->brief);
  parser.Flag("--table", &options->table);
  parser.Text("--svg", &options->svg);
  parser.Flag("--help", &options->help);
  return parser.Parse(arguments);
}

void RunSeeds(const Scenario& scenario, const Options& options, std::vector<Run>* runs) {
  for (int i = 0; i < options.seeds; ++i) {
    const Length length{static_cast<double>(options.seconds), static_cast<double>(options.fixed_seconds),
                        options.seed + static_cast<uint64_t>(i), options.tick_ms / 1000.0};
    Run run{scenario, RunDeciders(scenario, length, options.brief)};
    if (options.seeds > 1) printf("seed %d, ", static_cast<int>(length.seed));
    fputs(TextReport(run).c_str(), stdout);
    fflush(stdout);
    runs->push_back(std::move(run));
  }
}

std::vector<Run> RunAll(const Options& options) {
  std::vector<Run> runs;
  for (int hosts : options.hosts) {
    for (const Scenario& scenario : Scenarios(hosts, options.buffer_mb * 1e6)) {
      if (options.scenario == "list") printf("%-20s %s\n", scenario.name.c_str(), scenario.what.c_str());
      if (options.scenario.empty() || options.scenario == scenario.name) RunSeeds(scenario, options, &runs);
    }
  }
  return runs;
}

int Write(const std::string& name, const std::string& text) {
  if (name.empty()) return 0;
  std::ofstream file(name);
  file << text << std::flush;
  if (file) return 0;
  fprintf(stderr, "fabric: can't write %s\n", name.c_str());
  return 2;
}

int Main(const std::vector<std::string>& arguments) {
  Options options;
  if (const absl::Status status = Parse(arguments, &options); !status.ok()) {
    fprintf(stderr, "fabric: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  if (options.help) return fputs(kUsage, stdout) < 0 ? 2 : 0;
  const std::vector<Run> runs = RunAll(options);
  if (options.table) fputs(MarkdownTable(runs).c_str(), stdout);
  const std::string command = absl::StrCat("fabric ", absl::StrJoin(arguments, " "), "; seed ", options.seed);
  const int written = Write(options.svg, SvgPlots(runs, command));
  if (written != 0 || options.report.empty()) return written;
  return Write(options.report, bench::HtmlPage({PageData(runs, command)}, ""));
}

}  // namespace
}  // namespace fabric
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::fabric::Main(std::vector<std::string>(argv + 1, argv + argc)); }
