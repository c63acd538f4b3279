#include "common/unknown_params.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/params.h"

namespace tcpx {
namespace {

constexpr char kOurs[] = "TCPX_";
constexpr char kAnyOfOurs[] = "TCPX";
// Two letters exchanged are two changes.
constexpr size_t kSlip = 2;
constexpr char kTests[] = "TCPX_TEST_";

// How many characters have to be put in, taken out or changed to make `b` of `a`.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

struct RemovedParameter {
  const char* name;
  const char* advice;
};

constexpr RemovedParameter kRemoved[] = {
    {"TCPX_GATHER_BYTES", "unset it: small messages go out together when they come to 1M"},
    {"TCPX_GPU_SLOT_BYTES", "unset it: TCPX_GPU_POOL_BYTES says how much memory is pinned"},
    {"TCPX_OPTIONAL_RECV_COMPLETION", "set NCCL_NET_OPTIONAL_RECV_COMPLETION=0 to look for a fault"},
    {"TCPX_SPIN_US", "unset it: TCPX_THREADS=0 is for cores that are shared"},
    {"TCPX_THREADS_MAX", "set TCPX_THREADS to a number instead"},
    {"TCPX_TRACE_BYTES", "unset it: TCPX_TRACE_SAMPLE and TCPX_TRACE_EVENTS make a timeline shorter"},
};

bool IsOf(absl::Span<const Parameter> all, absl::string_view name) {
  return std::any_of(all.begin(), all.end(), [name](const Parameter& each) { return name == each.name; });
}

// Null: it was never one.
const RemovedParameter* FindRemoved(absl::string_view name) {
  for (const RemovedParameter& removed : kRemoved) {
    if (name == removed.name) return &removed;
  }
  return nullptr;
}

// No parameter, and by its name meant as one that protects.
bool IsMisspeltSecurity(absl::string_view name) {
  if (!absl::StartsWithIgnoreCase(name, kAnyOfOurs) || absl::StartsWith(name, kTests)) return false;
  if (IsOf(Parameters(), name)) return false;
  if (IsSecurity(name)) return true;
  const std::string upper = absl::AsciiStrToUpper(name);
  const auto slips = [&upper](const Parameter& each) {
    return IsSecurity(each.name) && Distance(upper, each.name) <= kSlip;
  };
  const absl::Span<const Parameter> all = Parameters();
  return std::any_of(all.begin(), all.end(), slips);
}

// Empty: none is due.
std::string WarningOf(absl::string_view name) {
  if (name == kTestUringRung || IsOf(TestParameters(), name))
    return absl::StrCat(name, " is in effect, and for tests only: unset it in a job");
  const bool security = IsMisspeltSecurity(name);
  const bool ours = absl::StartsWithIgnoreCase(name, kOurs) && !absl::StartsWith(name, kTests);
  if (!security && (!ours || IsOf(Parameters(), name))) return "";
  if (const RemovedParameter* const removed = FindRemoved(name)) {
    return absl::StrCat(name, " was removed and has no effect: ", removed->advice, " (CHANGELOG.md)");
  }
  const std::string nearest = NearestParameter(name, kOurs);
  const std::string hint = nearest.empty() ? "" : absl::StrCat("; the nearest name is ", nearest);
  const char* const effect =
      security ? "no parameter, and no connection is made while it is set" : "not known and has no effect";
  return absl::StrCat(name, " is ", effect, hint, " (docs/parameters.md has all)");
}

}  // namespace

bool IsRemovedParameter(absl::string_view name) { return FindRemoved(name) != nullptr; }

std::string NearestParameter(absl::string_view as_written, absl::string_view prefix) {
  const std::string name = absl::AsciiStrToUpper(as_written);
  absl::string_view nearest;
  size_t least = SIZE_MAX;
  for (const Parameter& parameter : Parameters()) {
    // A name that was not written to its end is as good as one with a wrong letter.
    const bool begins = name != prefix && absl::StartsWith(parameter.name, name);
    const size_t distance = begins ? 1 : Distance(name, parameter.name);
    if (!absl::StartsWith(parameter.name, prefix) || distance >= least) continue;
    least = distance;
    nearest = parameter.name;
  }
  return std::string(2 * least <= name.size() ? nearest : "");
}

std::vector<std::string> UnknownParameters(const char* const* environment) {
  std::vector<std::string> warnings;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const absl::string_view entry(*environment);
    std::string warning = WarningOf(entry.substr(0, entry.find('=')));
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  std::sort(warnings.begin(), warnings.end());
  return warnings;
}

std::string MisspeltSecurity(const char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const absl::string_view entry(*environment);
    const absl::string_view name = entry.substr(0, entry.find('='));
    if (IsMisspeltSecurity(name)) return WarningOf(name);
  }
  return "";
}

}  // namespace tcpx
