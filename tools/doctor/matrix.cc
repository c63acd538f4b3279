// The matrix of all pairs, and what is unusual in it.
#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/doctor/channel.h"
#include "tools/doctor/hosts.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr double kSlow = 0.6;   // of the median
constexpr double kFar = 2;      // times the median
constexpr double kFarUs = 200;  // and at least so much more: less a host may add that is busy while it is asked

// Tables of more hosts are wider than a screen; --json has the numbers.
constexpr size_t kTableHostsMax = 12;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Usual {
  double mbps = 0;
  double rtt_us = 0;
  int mtu = 0;
};

Usual UsualOf(const std::vector<Cell>& cells) {
  std::vector<double> speeds;
  std::vector<double> rtts;
  std::vector<double> mtus;
  for (const Cell& cell : cells) {
    if (!cell.reached) continue;
    rtts.push_back(cell.rtt_us);
    if (cell.mtu > 0) mtus.push_back(cell.mtu);
    for (const double speed : {cell.out_mbps, cell.in_mbps}) {
      if (speed > 0) speeds.push_back(speed);
    }
  }
  return {Median(speeds), Median(rtts), static_cast<int>(Median(mtus))};
}

// Empty if nothing is unusual.
std::string WhyOutlier(const Cell& cell, const Usual& usual) {
  if (!cell.reached) return absl::StrCat("not reached: ", cell.text);
  std::vector<std::string> reasons;
  if (cell.problems > 0) reasons.push_back(cell.text);
  const auto slow = [&](double mbps, const char* way) {
    if (mbps <= 0 || mbps >= kSlow * usual.mbps) return;
    reasons.push_back(absl::StrFormat("%s %.0f Mbit/s, where the median is %.0f", way, mbps, usual.mbps));
  };
  slow(cell.out_mbps, "there");
  slow(cell.in_mbps, "back");
  if (cell.rtt_us > kFar * usual.rtt_us && cell.rtt_us > usual.rtt_us + kFarUs) {
    reasons.push_back(absl::StrFormat("a round trip of %.0f us, where the median is %.0f", cell.rtt_us, usual.rtt_us));
  }
  if (cell.mtu > 0 && cell.mtu != usual.mtu) {
    reasons.push_back(absl::StrFormat("a path MTU of %d, where the median is %d", cell.mtu, usual.mtu));
  }
  return absl::StrJoin(reasons, "; ");
}

std::string Table(const std::vector<HostLine>& hosts, const std::vector<Cell>& cells, const char* title,
                  const std::function<std::string(const Cell&, bool back)>& value) {
  std::map<std::pair<int, int>, std::string> texts;
  for (const Cell& cell : cells) {
    texts[{cell.from, cell.to}] = value(cell, false);
    texts[{cell.to, cell.from}] = value(cell, true);
  }
  std::string text = absl::StrFormat("%-16s", title);
  for (const HostLine& host : hosts) absl::StrAppendFormat(&text, " %10s", host.name.substr(0, 10));
  for (int i = 0; i < static_cast<int>(hosts.size()); ++i) {
    absl::StrAppendFormat(&text, "\n%-16s", hosts[static_cast<size_t>(i)].name.substr(0, 16));
    for (int j = 0; j < static_cast<int>(hosts.size()); ++j) {
      const auto found = texts.find({i, j});
      absl::StrAppendFormat(&text, " %10s", i == j ? "-" : found == texts.end() ? "?" : found->second);
    }
  }
  return text + "\n\n";
}

// One character for each pair, so that hundreds of hosts fit on a screen: an odd row or column is an odd host.
std::string PictureText(const std::vector<HostLine>& hosts, const std::vector<Cell>& cells) {
  const Usual usual = UsualOf(cells);
  const size_t count = hosts.size();
  std::vector<std::string> rows(count, std::string(count, '?'));
  for (size_t i = 0; i < count; ++i) rows[i][i] = '\\';
  for (const Cell& cell : cells) {
    const auto shade = [&](double mbps) {
      if (!cell.reached) return '!';
      if (mbps <= 0) return cell.problems > 0 ? '!' : '.';  // no streams
      return mbps >= 0.9 * usual.mbps ? '.' : mbps >= kSlow * usual.mbps ? 'o' : '#';
    };
    rows[static_cast<size_t>(cell.from)][static_cast<size_t>(cell.to)] = shade(cell.out_mbps);
    rows[static_cast<size_t>(cell.to)][static_cast<size_t>(cell.from)] = shade(cell.in_mbps);
  }
  std::string text = absl::StrFormat(
      "speed, row to column, compared with the median: . as usual  o below 90 %%  # below %.0f %%  ! not reached  "
      "? not asked\n",
      kSlow * 100);
  for (size_t i = 0; i < count; ++i) absl::StrAppendFormat(&text, "%-16s %s\n", hosts[i].name.substr(0, 16), rows[i]);
  return text + "\n";
}

}  // namespace

Cell ParseSummary(int from, int to, const std::string& output) {
  Cell cell;
  cell.from = from;
  cell.to = to;
  cell.text = "the doctor there said nothing";
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    if (!absl::StartsWith(line, "summary ")) continue;
    const size_t at = line.find(" text=");
    const Fields fields = ParseFields(line.substr(0, at));
    cell.rtt_us = static_cast<double>(NumberOf(fields, "rtt_us", 0));
    cell.mtu = static_cast<int>(NumberOf(fields, "mtu", 0));
    cell.out_mbps = static_cast<double>(NumberOf(fields, "out_mbps", 0));
    cell.in_mbps = static_cast<double>(NumberOf(fields, "in_mbps", 0));
    cell.problems = static_cast<int>(NumberOf(fields, "problems", 0));
    cell.text = at == absl::string_view::npos ? "" : std::string(line.substr(at + 6));
    cell.reached = cell.rtt_us > 0;
  }
  return cell;
}

std::string MatrixText(const std::vector<HostLine>& hosts, const std::vector<Cell>& cells) {
  const std::string picture = PictureText(hosts, cells);
  if (hosts.size() > kTableHostsMax) return picture;
  const auto number = [](const Cell& cell, double value) {
    return cell.reached && value > 0 ? absl::StrFormat("%.0f", value) : std::string("?");
  };
  return absl::StrCat(
      picture,
      Table(hosts, cells, "Mbit/s, row to",
            [&](const Cell& cell, bool back) { return number(cell, back ? cell.in_mbps : cell.out_mbps); }),
      Table(hosts, cells, "round trip, us", [&](const Cell& cell, bool) { return number(cell, cell.rtt_us); }),
      Table(hosts, cells, "path MTU", [&](const Cell& cell, bool) { return number(cell, cell.mtu); }));
}

void JudgeMatrix(const std::vector<HostLine>& hosts, const std::vector<Cell>& cells, Report* report) {
  const Usual usual = UsualOf(cells);
  std::vector<size_t> pairs(hosts.size()), odd(hosts.size());
  std::vector<std::pair<const Cell*, std::string>> outliers;
  for (const Cell& cell : cells) {
    std::string reason = WhyOutlier(cell, usual);
    for (const int host : {cell.from, cell.to}) {
      ++pairs[static_cast<size_t>(host)];
      if (!reason.empty()) ++odd[static_cast<size_t>(host)];
    }
    if (!reason.empty()) outliers.emplace_back(&cell, std::move(reason));
  }
  const auto to_blame = [&](size_t host) { return pairs[host] > 1 && odd[host] == pairs[host]; };
  // If every pair is odd, no host is.
  const bool all_odd = !cells.empty() && outliers.size() == cells.size();
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!to_blame(i) || all_odd) continue;
    report->Problem("host", absl::StrCat(hosts[i].name, " is unusual in all of its ", pairs[i], " pairs"),
                    absl::StrCat("tcpx_doctor on ", hosts[i].name));
  }
  for (const auto& [cell, reason] : outliers) {
    const std::string& from = hosts[static_cast<size_t>(cell->from)].name;
    const std::string& to = hosts[static_cast<size_t>(cell->to)].name;
    report->Problem("pair", absl::StrCat(from, " and ", to, ": ", reason),
                    absl::StrCat("tcpx_doctor ", to, " on ", from));
  }
  if (outliers.empty() && !cells.empty()) {
    report->Ok("pair", absl::StrFormat("%d pairs alike: median %.0f Mbit/s, round trip %.0f us, path MTU %d",
                                       cells.size(), usual.mbps, usual.rtt_us, usual.mtu));
  }
}

}  // namespace doctor
}  // namespace tcpx
