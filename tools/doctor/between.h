// between.h: this host and another one: tcpx_doctor HOST.
//
// Purpose: each pair of interfaces, then streams through the plugin with 1, 4 and 16 flows in both directions, and what
//          follows for the settings. The other host runs tcpx_doctor listen.
// Threads: one; children for the streams. Units: Mbit/s, microseconds, bytes.
// Errors:  findings.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/greeting.h"
#include "tools/doctor/patient.h"

namespace tcpx {
namespace doctor {

struct Flows {
  int flows = 0;
  double out_mbps = 0;  // from here
  double in_mbps = 0;
  // The slower direction in the worst and the best of several rounds; 0: there was one round.
  double low_mbps = 0;
  double high_mbps = 0;
};

// A shorter run is no base for a number of lanes. Per direction and number of flows.
inline constexpr int kAdviceMs = 10000;

// What was measured between the two hosts.
struct Between {
  double rtt_us = 0;  // the shortest of all pairs
  double clock_offset_us = 0;
  int path_mtu = 0;  // the smallest of all pairs; 0: unknown
  int pairs = 0;
  int pairs_reached = 0;
  std::vector<Flows> flows;
};

// Checks "reach", "secret", "address", "variable", "pair", "mtu", "mark", "clock", "flow" and "setting".
Between CheckBetween(const Patient& patient, Report* report);

// The following are pure, and parts of it.
// What 1, 4 and 16 flows carried ("flow"), and the settings that follow ("setting"). `auto_flows`: how many the plugin
// would use by itself. `milliseconds`: how long each was measured.
void JudgeFlows(const std::vector<Flows>& flows, int auto_flows, int milliseconds, Report* report);

// What to do about a stream that failed for `reason`, after what the report has already.
std::string FixStream(const Report& report, absl::string_view reason);

// "variable": parameters that differ. False: the two hosts would refuse each other.
bool CompareParameters(const PeerFacts& here, const PeerFacts& there, Report* report);

// "clock": whether logs of the two fit together.
void JudgeClock(double offset_us, Report* report);

// "summary rtt_us=... mtu=... out_mbps=... in_mbps=... problems=N text=the first problem", for the matrix.
std::string SummaryLine(const Between& between, const Report& report);

}  // namespace doctor
}  // namespace tcpx
