#include "bench/fabric/svg_plots.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tcpx {
namespace fabric {
namespace {

constexpr int kAcross = 3;
constexpr double kWidth = 300, kHeight = 210;  // of a panel
constexpr double kLegend = 24;                 // its height
constexpr double kLeft = 40, kPlot = 245;      // where its plots begin, and how wide they are
constexpr double kRateTop = 26, kRateHeight = 100, kDialsTop = 142, kDialsHeight = 40;
constexpr double kRateMin = 0.4, kRateMax = 1.1;  // parts of the best fixed number
constexpr double kDialsMax = 2;                   // a second and host
constexpr double kSpan = 2;                       // seconds for one point
constexpr const char* kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};

double End(const Course& course) { return static_cast<double>(course.bytes.size()) * Course::kSpan; }

double BestFixed(const Run& run) {
  double best = 0;
  const std::vector<Decider> deciders = Deciders();
  for (size_t i = 0; i < deciders.size(); ++i) {
    if (deciders[i].oracle || deciders[i].policy.kind != Policy::Kind::kFixed) continue;
    if (run.outcomes[i].courses.empty()) continue;
    const Course& course = run.outcomes[i].courses[0];
    best = std::max(best, course.Rate(LastStart(run.scenario), End(course)));
  }
  return best;
}

double Down(double value, double least, double most, double top, double height) {
  return top + height * (1 - (std::clamp(value, least, most) - least) / (most - least));
}

std::string Text(double x, double y, const std::string& more, const std::string& text) {
  return absl::StrFormat("<text x=\"%.0f\" y=\"%.0f\" %s>%s</text>\n", x, y, more, text);
}

// A horizontal line, with its value at the left.
std::string Level(double y, const std::string& value) {
  return absl::StrFormat("<path d=\"M%.0f %.1fh%.0f\" stroke=\"#ddd\"/>\n", kLeft, y, kPlot) +
         Text(kLeft - 4, y + 4, "text-anchor=\"end\"", value);
}

std::string Axes(const std::string& title, double end) {
  std::string text = Text(kLeft, 14, "font-weight=\"bold\"", title);
  for (const double level : {0.4, 0.6, 0.8, 1.0}) {
    text += Level(Down(level, kRateMin, kRateMax, kRateTop, kRateHeight), absl::StrFormat("%.1f", level));
  }
  for (const double level : {0.0, 1.0, 2.0}) {
    text += Level(Down(level, 0, kDialsMax, kDialsTop, kDialsHeight), absl::StrFormat("%.0f", level));
  }
  for (int i = 0; i <= 3; ++i) {
    text += Text(kLeft + kPlot * i / 3, kDialsTop + kDialsHeight + 14, "text-anchor=\"middle\"",
                 absl::StrFormat("%.0f s", end * i / 3));
  }
  return text;
}

template <typename Function>
std::string Line(const Course& course, const char* color, Function down) {
  std::string path;
  const double end = End(course);
  for (double from = 0; from + kSpan <= end + 1e-6; from += kSpan) {
    absl::StrAppendFormat(&path, "%c%.1f %.1f", path.empty() ? 'M' : 'L', kLeft + kPlot * (from + kSpan / 2) / end,
                          down(from));
  }
  return absl::StrCat("<path d=\"", path, "\" fill=\"none\" stroke=\"", color, "\" stroke-width=\"1.5\"/>\n");
}

std::string Lines(const Run& run, const char* color) {
  const Course& course = run.outcomes[0].courses[0];
  const double best = BestFixed(run);
  return Line(course, color,
              [&](double from) {
                return Down(course.Rate(from, from + kSpan) / best, kRateMin, kRateMax, kRateTop, kRateHeight);
              }) +
         Line(course, color, [&](double from) {
           return Down(course.Dials(from, from + kSpan) / course.hosts, 0, kDialsMax, kDialsTop, kDialsHeight);
         });
}

struct Panel {
  std::string name;
  std::vector<int> hosts;
  double end = 0;
  std::string lines;
};

struct Picture {
  std::vector<Panel> panels;
  std::vector<int> hosts;  // by color

  const char* Color(int of) {
    auto at = std::find(hosts.begin(), hosts.end(), of);
    if (at == hosts.end()) at = hosts.insert(hosts.end(), of);
    return kColors[static_cast<size_t>(at - hosts.begin()) % std::size(kColors)];
  }
  void Add(const Run& run) {
    const auto named = [&](const Panel& panel) { return panel.name == run.scenario.name; };
    auto at = std::find_if(panels.begin(), panels.end(), named);
    if (at == panels.end()) at = panels.insert(panels.end(), {run.scenario.name, {}, 0, ""});
    if (std::count(at->hosts.begin(), at->hosts.end(), run.scenario.hosts) > 0) return;
    at->hosts.push_back(run.scenario.hosts);
    at->end = End(run.outcomes[0].courses[0]);
    at->lines += Lines(run, Color(run.scenario.hosts));
  }
};

}  // namespace

std::string SvgPlots(const std::vector<Run>& runs, const std::string& command) {
  Picture picture;
  for (const Run& run : runs) picture.Add(run);
  const size_t down = (picture.panels.size() + kAcross - 1) / kAcross;
  std::string text = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<desc>%s</desc>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
      kAcross * kWidth, kLegend + kHeight * static_cast<double>(down), command);
  for (size_t i = 0; i < picture.hosts.size(); ++i) {
    const std::string color = absl::StrCat("fill=\"", kColors[i % std::size(kColors)], "\"");
    text += Text(kLeft + 80 * static_cast<double>(i), 14, color, absl::StrCat(picture.hosts[i], " hosts"));
  }
  for (size_t i = 0; i < picture.panels.size(); ++i) {
    const Panel& panel = picture.panels[i];
    absl::StrAppendFormat(&text, "<g transform=\"translate(%.0f %.0f)\">\n", kWidth * static_cast<double>(i % kAcross),
                          kLegend + kHeight * static_cast<double>(i / kAcross));
    absl::StrAppend(&text, Axes(panel.name, panel.end), panel.lines, "</g>\n");
  }
  return text + "</svg>\n";
}

}  // namespace fabric
}  // namespace tcpx
