#include "bench/fabric/verdict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tcpx {
namespace fabric {
namespace {

// The bars are about what the autopilot has had time to find.
constexpr double kFound = 10;
constexpr double kWindow = 10;
// A collective lasts half a second: shorter spans show its gaps.
constexpr double kSmooth = 2;

double End(const Course& course) { return static_cast<double>(course.bytes.size()) * Course::kSpan; }

std::vector<double> Smoothed(const Course& course, double from, double to) {
  std::vector<double> rates;
  for (double at = from; at + kSmooth <= to + 1e-6; at += kSmooth) rates.push_back(course.Rate(at, at + kSmooth));
  return rates;
}

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size())) / mean;
}

// The worst of all windows from `from` to `to`, as a part of what `other` has on average.
double WorstWindow(const Course& course, double from, double to, double other) {
  double worst = kUnlimited;
  for (double at = from; at + kWindow <= to + 1e-6; at += 1) {
    worst = std::min(worst, course.Rate(at, at + kWindow) / other);
  }
  return worst;
}

// While another job has not begun a rate says nothing of the time after. A fixed number does in its short run what it
// would do all the time.
double WorstWindow(const Course& course, double start, double all_run, const Course& fixed) {
  const double after = WorstWindow(course, all_run, End(course), fixed.Rate(all_run, End(fixed)));
  if (start >= all_run) return after;
  return std::min(after, WorstWindow(course, start, all_run, fixed.Rate(start, all_run)));
}

// What trials take of the last third: how much less it brings than a pilot that does nothing then.
double Spent(const Course& course, const Course& frozen, double all_run) {
  const double end = End(course), settled = Settled(all_run, end);
  return 1 - course.Rate(settled, end) / frozen.Rate(settled, end);
}

// Where the time begins in which a rate counts.
double Found(double from, double to) { return std::min(from + kFound, (from + to) / 2); }

}  // namespace

Figures FiguresOf(const Course& course, double start, double all_run) {
  Figures figures;
  all_run = std::max(all_run, start);
  const double end = End(course), settled = Settled(start, end);
  figures.rate = course.Rate(Found(all_run, end), end);
  if (start < all_run) figures.kept = figures.rate / course.Rate(Found(start, all_run), all_run);
  std::vector<double> times;
  for (const auto& [at, took] : course.collectives) {
    if (at > settled) times.push_back(took);
  }
  std::sort(times.begin(), times.end());
  figures.collective = Mean(times);
  if (!times.empty()) figures.p99 = times[(times.size() * 99 + 99) / 100 - 1];
  figures.lanes = course.sockets.back() / course.connections;
  figures.host_lanes = course.sockets.back() / course.hosts;
  figures.first_dials = course.Dials(start, start + kFound) / course.hosts;
  figures.dials = course.Dials(settled, end) / course.hosts;
  const std::vector<double> rates = Smoothed(course, settled, end);
  figures.deviation = Deviation(rates);
  const double last = Mean(rates);
  for (double at = start; at + kSmooth <= end; at += 0.1) {
    if (std::abs(course.Rate(at, at + kSmooth) / last - 1) > 0.05) figures.settles = at + kSmooth - start;
  }
  return figures;
}

std::vector<Bar> BarsOf(const Scenario& scenario, const std::vector<Outcome>& outcomes) {
  Bar best{"best", "of the best fixed number, after 10 s", 0.95, kUnlimited, true};
  Bar one{"one", "of one fixed lane, worst 10 s", 0.97, kUnlimited, true};
  Bar oracle{"oracle", "of perfect spreading", 0.90, kUnlimited, true};
  Bar deviation{"deviation", "deviation once settled", 0.03, 0, false};
  Bar dials{"dials", "dials a second and host, settled", 0.1, 0, false};
  Bar trials{"trials", "spent on trials, settled", 0.01, -kUnlimited, false};
  const std::vector<Decider> deciders = Deciders();
  const double all_run = LastStart(scenario);
  for (size_t job = 0; job < scenario.jobs.size(); ++job) {
    const double start = scenario.jobs[job].start;
    const Course& piloted = outcomes[0].courses[job];
    const Figures figures = FiguresOf(piloted, start, all_run);
    double most = 0;
    for (size_t i = 1; i < outcomes.size(); ++i) {
      if (outcomes[i].courses.empty()) continue;
      const Course& other = outcomes[i].courses[job];
      const double rate = other.Rate(all_run, End(other));
      if (deciders[i].oracle) oracle.seen = std::min(oracle.seen, figures.rate / rate);
      if (deciders[i].frozen) trials.seen = std::max(trials.seen, Spent(piloted, other, all_run));
      if (deciders[i].oracle || deciders[i].policy.kind != Policy::Kind::kFixed) continue;
      if (deciders[i].policy.lanes == 1) {
        one.seen = std::min(one.seen, WorstWindow(piloted, start, all_run, other));
      }
      most = std::max(most, rate);
    }
    best.seen = std::min(best.seen, figures.rate / most);
    deviation.seen = std::max(deviation.seen, figures.deviation);
    dials.seen = std::max(dials.seen, figures.dials);
  }
  std::vector<Bar> bars = {best, one, deviation, dials};
  if (trials.seen > -kUnlimited) bars.push_back(trials);
  if (scenario.one_per_pair) bars.insert(bars.begin() + 2, oracle);
  return bars;
}

}  // namespace fabric
}  // namespace tcpx
