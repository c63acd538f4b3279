#include "bench/fabric/fabric_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/escape.h"

namespace tcpx {
namespace fabric {
namespace {

constexpr double kGbit = 1e9 / 8;
constexpr int kPoints = 30;

std::string Title(const Run& run) { return absl::StrCat(run.scenario.name, ", ", run.scenario.hosts, " hosts"); }

// Over time, at `kPoints` places.
template <typename Function>
std::string Series(const std::string& name, const std::string& style, const Course& course, double end,
                   Function value) {
  std::vector<std::string> values;
  const double own = static_cast<double>(course.bytes.size()) * Course::kSpan;
  for (int i = 0; i < kPoints; ++i) {
    const double from = end * i / kPoints, to = end * (i + 1) / kPoints;
    values.push_back(to > own + 1e-6 ? "null" : absl::StrFormat("%.5g", value(course, from, to)));
  }
  return absl::StrCat("{\"name\": ", JsonText(name), ", \"style\": ", JsonText(style), ", \"values\": [",
                      absl::StrJoin(values, ", "), "]}");
}

std::string Plot(const std::string& title, const std::string& up, double end, const std::vector<std::string>& series) {
  std::vector<std::string> labels;
  for (int i = 0; i < kPoints; ++i) {
    labels.push_back(i % 5 == 4 ? absl::StrCat("\"", static_cast<int>(end * (i + 1) / kPoints), "\"") : "\"\"");
  }
  return absl::StrCat("{\"title\": ", JsonText(title), ", \"across\": \"s\", \"up\": ", JsonText(up), ", \"labels\": [",
                      absl::StrJoin(labels, ", "), "], \"series\": [", absl::StrJoin(series, ", "), "]}");
}

std::vector<std::string> Plots(const Run& run) {
  const std::vector<Course>& piloted = run.outcomes[0].courses;
  const double end = static_cast<double>(piloted[0].bytes.size()) * Course::kSpan;
  const auto rate = [](const Course& course, double from, double to) { return course.Rate(from, to) / kGbit; };
  const auto lanes = [](const Course& course, double, double to) { return course.Sockets(to) / course.connections; };
  std::vector<std::string> rates, all_lanes;
  for (size_t job = 0; job < piloted.size(); ++job) {
    const std::string name = job == 0 ? "autopilot" : "autopilot, second job";
    rates.push_back(Series(name, job == 0 ? "plugin" : "vs", piloted[job], end, rate));
    all_lanes.push_back(Series(name, job == 0 ? "plugin" : "vs", piloted[job], end, lanes));
  }
  // What a fixed number does in its short run it would do all the time.
  for (const auto& [decider, style] : {std::pair<size_t, const char*>{1, "each"}, {4, "floor"}}) {
    const Course& course = run.outcomes[decider].courses[0];
    const double own = static_cast<double>(course.bytes.size()) * Course::kSpan;
    const double mean = course.Rate(0, own) / kGbit;
    Course whole = piloted[0];
    rates.push_back(Series(run.outcomes[decider].decider, style, whole, end,
                           [mean](const Course&, double, double) { return mean; }));
  }
  return {Plot(Title(run) + ": rate of all connections", "Gbit/s", end, rates),
          Plot(Title(run) + ": lanes of a connection", "lanes", end, all_lanes)};
}

std::string Row(const Run& run, const Outcome& outcome, size_t job) {
  const Figures figures = FiguresOf(outcome.courses[job], run.scenario.jobs[job].start, LastStart(run.scenario));
  return absl::StrFormat(
      "{\"decider\": %s, \"job\": %d, \"gbit_per_second\": %.5g, \"collective_ms\": %.4g, \"p99_ms\": %.4g, "
      "\"lanes\": %.3g, \"lanes_of_a_host\": %.4g, \"first_dials\": %.3g, \"dials\": %.3g, \"settles_s\": %.3g, "
      "\"after_another_job\": %.3g}",
      JsonText(outcome.decider), job + 1, figures.rate / kGbit, 1000 * figures.collective, 1000 * figures.p99,
      figures.lanes, figures.host_lanes, figures.first_dials, figures.dials, figures.settles, figures.kept);
}

std::vector<std::string> Tables(const Run& run) {
  std::vector<std::string> rows, bars;
  for (const Outcome& outcome : run.outcomes) {
    for (size_t job = 0; job < outcome.courses.size(); ++job) rows.push_back(Row(run, outcome, job));
  }
  for (const Bar& bar : BarsOf(run.scenario, run.outcomes)) {
    bars.push_back(absl::StrFormat("{\"bar\": %s, \"limit\": \"%s %.3g\", \"seen\": %.3g, \"holds\": \"%s\"}",
                                   JsonText(bar.name), bar.at_least ? "at least" : "at most", bar.limit, bar.seen,
                                   bar.holds() ? "yes" : "no"));
  }
  const std::string caption = absl::StrCat(Title(run), ": ", run.scenario.what);
  return {absl::StrCat("{\"caption\": ", JsonText(caption), ", \"rows\": [", absl::StrJoin(rows, ", "), "]}"),
          absl::StrCat("{\"caption\": ", JsonText(Title(run) + ": bars"), ", \"rows\": [", absl::StrJoin(bars, ", "),
                       "]}")};
}

}  // namespace

std::string TextReport(const Run& run) {
  std::string text = absl::StrCat(Title(run), ": ", run.scenario.what, "\n");
  absl::StrAppendFormat(&text, "  %-22s %3s %10s %8s %8s %6s %7s %7s %7s %7s\n", "", "job", "Gbit/s", "mean ms",
                        "p99 ms", "lanes", "a host", "dials", "settles", "kept");
  for (const Outcome& outcome : run.outcomes) {
    for (size_t job = 0; job < outcome.courses.size(); ++job) {
      const Figures f = FiguresOf(outcome.courses[job], run.scenario.jobs[job].start, LastStart(run.scenario));
      absl::StrAppendFormat(&text, "  %-22s %3d %10.1f %8.1f %8.1f %6.1f %7.1f %7.3f %6.1fs %7.3f\n", outcome.decider,
                            static_cast<int>(job) + 1, f.rate / kGbit, 1000 * f.collective, 1000 * f.p99, f.lanes,
                            f.host_lanes, f.dials, f.settles, f.kept);
    }
  }
  for (const Bar& bar : BarsOf(run.scenario, run.outcomes)) {
    absl::StrAppendFormat(&text, "  %s %s: %.3f, at %s %.2f\n", bar.holds() ? "holds " : "MISSES", bar.name, bar.seen,
                          bar.at_least ? "least" : "most", bar.limit);
  }
  return text;
}

std::string PageData(const std::vector<Run>& runs, const std::string& command) {
  std::vector<std::string> plots, tables;
  for (const Run& run : runs) {
    for (std::string& plot : Plots(run)) plots.push_back(std::move(plot));
    for (std::string& table : Tables(run)) tables.push_back(std::move(table));
  }
  return absl::StrCat("{\"configuration\": [[\"note\", \"Simulated fabrics\"], [\"command\", ", JsonText(command),
                      "]],\n\"modes\": [], \"results\": [], \"ratios\": [], \"costs\": [], \"allreduce\": [], ",
                      "\"optional_recv\": [], \"mixed\": [],\n\"plots\": [", absl::StrJoin(plots, ",\n"),
                      "],\n\"tables\": [", absl::StrJoin(tables, ",\n"), "]}\n");
}

}  // namespace fabric
}  // namespace tcpx
