// What streams of 1, 4 and 16 flows say about the network between two hosts, and the settings that follow.
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
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
  const std::string range =
      flows.high_mbps > 0 ? absl::StrFormat(" (the slower one %.0f to %.0f)", flows.low_mbps, flows.high_mbps) : "";
  return absl::StrFormat("%d %s: %.0f Mbit/s out, %.0f in%s", flows.flows, flows.flows == 1 ? "flow" : "flows",
                         flows.out_mbps, flows.in_mbps, range);
}

// Any of the words, as the plugin and the kernel write them.
bool SaysAny(absl::string_view text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [text](const char* word) { return absl::StrContains(absl::AsciiStrToLower(text), word); });
}

void JudgeDirections(const Flows& best, Report* report) {
  const double high = std::max(best.out_mbps, best.in_mbps);
  if (Slower(best) <= 0 || high / Slower(best) < kUnequal) return;
  report->Note(
      "flow", absl::StrFormat("the directions differ: %s", SpeedText(best)),
      "look for a shaper, a duplex mismatch or a busy host: tcpx_doctor on both hosts, tc -s qdisc, ethtool -S");
}

}  // namespace

std::string FixStream(const Report& report, absl::string_view reason) {
  if (SaysAny(reason, {"changed on the path"})) return "find the proxy or middlebox between the hosts";
  if (SaysAny(reason, {"none of the ciphers"})) return "set TCPX_ENCRYPT_CIPHER to the same value on both hosts";
  if (SaysAny(reason, {"tcpx_encrypt alike", "does not encrypt"})) {
    return "set TCPX_ENCRYPT to the same value on both hosts";
  }
  if (SaysAny(reason, {"secret"})) return "copy the file to both hosts, and set TCPX_SECRET_FILE on both";
  if (SaysAny(reason, {"wire version", "not written by tcpx"})) return "install one build of tcpx on all hosts";
  if (SaysAny(reason, {"on the other host: run"})) return "tcpx_doctor on the other host, and what it says there";
  if (SaysAny(reason, {"another family"})) return "set NCCL_SOCKET_FAMILY to the same value on both hosts";
  if (report.HasProblem("mtu")) return "first do what the line about mtu says: large packets do not pass";
  if (SaysAny(reason, {"no answer", "refused", "listens there", "firewall", "no progress", "timed out", "none in"})) {
    return "open the plugin's ports in the firewall (TCPX_PORT_RANGE), or leave the interface out with "
           "NCCL_SOCKET_IFNAME";
  }
  return "NCCL_DEBUG=INFO on both hosts shows the plugin's lines";
}

void JudgeFlows(const std::vector<Flows>& flows, int auto_flows, int milliseconds, Report* report) {
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
    report->Ok("setting", "one flow fills the path: TCPX_LANES may stay as it is");
    return;
  }
  if (enough->low_mbps > 0 && enough->low_mbps <= flows.front().high_mbps) {
    report->Ok("setting", "the rounds differ as much as the numbers of flows do: TCPX_LANES may stay as it is");
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
  if (milliseconds < kAdviceMs) {
    report->Ok("setting", absl::StrCat("runs of ", milliseconds,
                                       " ms are too short to recommend TCPX_LANES: for that use --ms ", kAdviceMs));
    return;
  }
  report->Note("setting",
               absl::StrFormat("the plugin would take %d %s by itself, and %d bring %.0f Mbit/s", auto_flows,
                               auto_flows == 1 ? "flow" : "flows", enough->flows, Slower(*enough)),
               absl::StrCat("export TCPX_LANES=", enough->flows + 1));
}

void JudgeClock(double offset_us, Report* report) {
  const std::string text = absl::StrFormat("the other host's clock is %.3f ms %s", std::fabs(offset_us) / 1000,
                                           offset_us < 0 ? "slow" : "ahead");
  if (std::fabs(offset_us) < kClocksMayDifferUs) return report->Ok("clock", text);
  report->Note("clock", text + ": times in logs and timelines of the two can't be compared",
               "chronyc makestep, or let NTP run on both");
}

}  // namespace doctor
}  // namespace tcpx
