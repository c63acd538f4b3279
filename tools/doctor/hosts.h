// hosts.h: all pairs of a list of hosts: tcpx_doctor --hosts FILE.
//
// Purpose: which hosts and which pairs are unusual. A command line (ssh, srun) starts a listening doctor on each host,
//          and then an asking one on the first host of each pair. Pairs without a common host are asked at once;
//          nothing stays on any.
// Threads: one; children. Units: Mbit/s, microseconds, bytes.
// Errors:  findings; a file that can't be used is wrong usage.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/doctor/command.h"
#include "tools/doctor/finding.h"

namespace tcpx {
namespace doctor {

struct HostLine {
  std::string name;     // for --start
  std::string address;  // that the others dial; the name where there is none
};

// "NAME [ADDRESS]" lines; # opens a comment. kInvalidArgument with the line.
absl::StatusOr<std::vector<HostLine>> ParseHosts(const std::string& text);

// All pairs of hosts, each once, in rounds: in a round no host is in two pairs, and there are at most `at_once` pairs.
std::vector<std::vector<std::pair<int, int>>> PairRounds(int hosts, int at_once);

// One pair, asked by the first.
struct Cell {
  int from = 0;
  int to = 0;
  bool reached = false;
  double rtt_us = 0;
  int mtu = 0;
  double out_mbps = 0;  // from `from` to `to`
  double in_mbps = 0;
  int problems = 0;
  std::string text;  // the first problem, or why there is nothing
};

// What SummaryLine of between.h says.
Cell ParseSummary(int from, int to, const std::string& output);

std::string MatrixText(const std::vector<HostLine>& hosts, const std::vector<Cell>& cells);
// Pure. The pairs, and the hosts with only such pairs, are unusual: "pair" and "host".
void JudgeMatrix(const std::vector<HostLine>& hosts, const std::vector<Cell>& cells, Report* report);

// The exit code.
int ExamineHosts(const Command& command);

}  // namespace doctor
}  // namespace tcpx
