#include "common/cpu_list.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tcpx {
namespace {

bool ParseCpu(absl::string_view text, int* cpu) { return absl::SimpleAtoi(text, cpu) && *cpu >= 0 && *cpu < kMaxCpus; }

bool AppendCpuRange(absl::string_view part, std::vector<int>* cpus) {
  const size_t dash = part.find('-');
  int first = 0;
  if (!ParseCpu(part.substr(0, dash), &first)) return false;
  int last = first;
  if (dash != absl::string_view::npos && !ParseCpu(part.substr(dash + 1), &last)) return false;
  if (last < first) return false;
  for (int cpu = first; cpu <= last; ++cpu) cpus->push_back(cpu);
  return true;
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text) {
  std::vector<int> cpus;
  if (text.empty()) return cpus;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (!AppendCpuRange(part, &cpus)) {
      return absl::InvalidArgumentError(absl::StrCat("not a list of cpus like 0-3,7: \"", text, "\""));
    }
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string FormatCpuList(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpus[i]);
    if (last > i) absl::StrAppend(&text, "-", cpus[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> CommonCpus(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace tcpx
