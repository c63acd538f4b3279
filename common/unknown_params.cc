// Variables that look like parameters and are none.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/params.h"

namespace tcpx {
namespace {

constexpr char kOurs[] = "TCPX_";
constexpr char kAnyOfOurs[] = "TCPX";
// Changes that make a slip of a whole name; fewer where the name does not even say whose it is, or of one word.
constexpr size_t kSlips = 2;
constexpr size_t kSlip = 1;
constexpr char kTests[] = "TCPX_TEST_";

// How many characters have to be put in, taken out, changed or exchanged with the next to make `b` of `a`.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  std::vector<size_t> above;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::vector<size_t> before = std::exchange(above, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = above[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({changed, row[j] + 1, above[j + 1] + 1});
      const bool exchanged = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (exchanged) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row[b.size()];
}

// With what to do instead.
constexpr std::pair<const char*, const char*> kRemoved[] = {
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

// What to do instead; null: it was never one.
const char* AdviceOnRemoved(absl::string_view name) {
  for (const auto& [removed, advice] : kRemoved) {
    if (name == removed) return advice;
  }
  return nullptr;
}

// As a shell would have it: a file of settings may have "export ", a blank or a mark of its encoding before a name.
// NCCL takes these for a part of the name.
std::string Cleaned(absl::string_view name) {
  std::string clean;
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_') clean += absl::ascii_toupper(c);
  }
  return std::string(clean == name ? clean : absl::StripPrefix(clean, "EXPORT"));
}

// Some part of `text` is `word`, or almost.
bool HasAlmost(absl::string_view text, absl::string_view word) {
  for (size_t at = 0; at < text.size(); ++at) {
    for (size_t length = word.size() - kSlip; length <= word.size() + kSlip; ++length) {
      if (at + length <= text.size() && Distance(text.substr(at, length), word) <= kSlip) return true;
    }
  }
  return false;
}

bool SpeaksOfSecurity(absl::string_view name) {
  if (IsSecurity(name) || absl::StrContains(name, "CRYPT") || absl::StrContains(name, "CIPHER")) return true;
  for (const absl::string_view word : absl::StrSplit(name, '_')) {
    if (word == "TLS" || word == "PSK") return true;
  }
  return HasAlmost(name, "ENCRYPT") || HasAlmost(name, "SECRET");
}

// What Kubernetes sets for each Service of the namespace, and bash for a function that it exports.
bool IsNobodysSetting(absl::string_view name) {
  return absl::StrContains(name, "_SERVICE_HOST") || absl::StrContains(name, "_SERVICE_PORT") ||
         absl::StrContains(name, "_PORT_") || absl::EndsWith(name, "_PORT") || absl::StartsWith(name, "BASH_FUNC_");
}

// No parameter, and by its name meant as one that protects.
bool IsMisspeltSecurity(absl::string_view as_written) {
  if (absl::StartsWith(as_written, kTests) || IsOf(Parameters(), as_written)) return false;
  if (IsNobodysSetting(as_written)) return false;
  const std::string clean = Cleaned(as_written);
  const size_t ours = clean.find(kAnyOfOurs);
  const absl::string_view name = absl::string_view(clean).substr(ours == std::string::npos ? 0 : ours);
  if (ours != std::string::npos && SpeaksOfSecurity(name.substr(sizeof(kAnyOfOurs) - 1))) return true;
  const size_t slips = ours == std::string::npos ? kSlip : kSlips;
  const auto almost = [name, slips](const Parameter& each) {
    return IsSecurity(each.name) && Distance(name, each.name) <= slips;
  };
  const absl::Span<const Parameter> all = Parameters();
  return std::any_of(all.begin(), all.end(), almost);
}

// Empty: none is due.
std::string WarningOf(absl::string_view name) {
  if (name == kTestUringRung || IsOf(TestParameters(), name))
    return absl::StrCat(name, " is in effect, and for tests only: unset it in a job");
  const bool security = IsMisspeltSecurity(name);
  const bool ours = absl::StartsWithIgnoreCase(name, kOurs) && !absl::StartsWith(name, kTests);
  if (!security && (!ours || IsOf(Parameters(), name))) return "";
  if (const char* const advice = AdviceOnRemoved(name)) {
    return absl::StrCat(name, " was removed and has no effect: ", advice, " (CHANGELOG.md)");
  }
  const std::string nearest = NearestParameter(security ? Cleaned(name) : name, kOurs);
  const std::string hint = nearest.empty() ? "" : absl::StrCat("; the nearest name is ", nearest);
  const char* const effect =
      security ? "no parameter, and no connection is made while it is set" : "not known and has no effect";
  return absl::StrCat(absl::CHexEscape(name), " is ", effect, hint, " (docs/parameters.md has all)");
}

}  // namespace

bool IsRemovedParameter(absl::string_view name) { return AdviceOnRemoved(name) != nullptr; }

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
