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

bool IsParameter(absl::string_view name) {
  const absl::Span<const Parameter> all = Parameters();
  return std::any_of(all.begin(), all.end(), [name](const Parameter& each) { return name == each.name; });
}

// Empty: none is due.
std::string WarningOf(absl::string_view name) {
  if (name == kTestUringRung) return absl::StrCat(name, " is in effect, and for tests only: unset it in a job");
  if (!absl::StartsWithIgnoreCase(name, kOurs) || absl::StartsWith(name, kTests) || IsParameter(name)) return "";
  const std::string nearest = NearestParameter(name, kOurs);
  const std::string hint = nearest.empty() ? "" : absl::StrCat("; the nearest name is ", nearest);
  return absl::StrCat(name, " is not known and has no effect", hint, " (docs/parameters.md has all)");
}

}  // namespace

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

}  // namespace tcpx
