// What streams of 1, 4 and 16 flows tell of the network between, and the settings that follow.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/doctor/between.h"

namespace tcpx {
namespace doctor {
namespace {

// More is no measuring error on a busy machine.
constexpr double kMuchMore = 1.3;
constexpr double kUnequal = 2;
constexpr double kClocksMayDifferUs = 10000;

double Slower(const Flows& flows) { return std::min(flows.out_mbps, flows.in_mbps); }

std::string SpeedText(const Flows& flows) {
  return absl::StrFormat("%d %s: %.0f Mbit/s out, %.0f in", flows.flows, flows.flows == 1 ? "flow" : "flows",
                         flows.out_mbps, flows.in_mbps);
}

void JudgeDirections(const Flows& best, Report* report) {
  const double high = std::max(best.out_mbps, best.in_mbps);
  if (Slower(best) <= 0 || high / Slower(best) < kUnequal) return;
  report->Note(
      "flow", absl::StrFormat("the directions differ: %s", SpeedText(best)),
      "look for a shaper, a duplex mismatch or a busy host: tcpx_doctor on both hosts, tc -s qdisc, ethtool -S");
}

}  // namespace

void JudgeFlows(const std::vector<Flows>& flows, int auto_flows, Report* report) {
  if (flows.empty()) return;
  for (const Flows& each : flows) report->Ok("flow", SpeedText(each));
  // The fewest that are about as fast as any.
  const auto most = std::max_element(flows.begin(), flows.end(),
                                     [](const Flows& a, const Flows& b) { return Slower(a) < Slower(b); });
  const auto enough = std::find_if(flows.begin(), flows.end(),
                                   [&](const Flows& each) { return Slower(each) * kMuchMore >= Slower(*most); });
  JudgeDirections(*most, report);
  const double one = Slower(flows.front());
  if (enough->flows == 1 || one <= 0) {
    report->Ok("setting", "one flow fills the way: TCPX_LANES may stay as it is");
    return;
  }
  const double times = Slower(*enough) / one;
  report->Note("flow", absl::StrFormat("a flow is limited to about %.0f Mbit/s; %d bring %.1f times as much: a limit "
                                       "for each flow, or about %.0f paths",
                                       one, enough->flows, times, times));
  if (auto_flows >= enough->flows) {
    report->Ok("setting",
               absl::StrCat("the plugin takes ", auto_flows, " flows by itself: TCPX_LANES may stay as it is"));
    return;
  }
  report->Note("setting",
               absl::StrFormat("the plugin would take %d %s by itself, and %d bring %.0f Mbit/s", auto_flows,
                               auto_flows == 1 ? "flow" : "flows", enough->flows, Slower(*enough)),
               absl::StrCat("export TCPX_LANES=", enough->flows + 1));
}

void JudgeClock(double offset_us, Report* report) {
  const std::string text = absl::StrFormat("the other host's clock is %.3f ms %s", std::fabs(offset_us) / 1000,
                                           offset_us < 0 ? "behind" : "ahead");
  if (std::fabs(offset_us) < kClocksMayDifferUs) return report->Ok("clock", text);
  report->Note("clock", text + ": logs and timelines of the two do not fit together",
               "chronyc makestep, or let NTP run on both");
}

}  // namespace doctor
}  // namespace tcpx
