#include "common/traffic_class.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tcpx {
namespace {

constexpr int kDscpMax = 63;

constexpr struct {
  const char* name;
  int dscp;
} kDscpNames[] = {
    {"df", 0},    {"be", 0},    {"cs0", 0},   {"le", 1},    {"cs1", 8},   {"af11", 10}, {"af12", 12},
    {"af13", 14}, {"cs2", 16},  {"af21", 18}, {"af22", 20}, {"af23", 22}, {"cs3", 24},  {"af31", 26},
    {"af32", 28}, {"af33", 30}, {"cs4", 32},  {"af41", 34}, {"af42", 36}, {"af43", 38}, {"cs5", 40},
    {"va", 44},   {"ef", 46},   {"cs6", 48},  {"cs7", 56},
};

// Digits only: the library's parser would take spaces and signs too.
bool ParseNumber(absl::string_view text, int max, int* value) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) return false;
  return absl::SimpleAtoi(text, value) && *value <= max;
}

bool ParseDscp(absl::string_view text, int* dscp) {
  const std::optional<int> named = DscpOfName(text);
  if (!named.has_value()) return ParseNumber(text, kDscpMax, dscp);
  *dscp = *named;
  return true;
}

}  // namespace

std::optional<int> DscpOfName(absl::string_view text) {
  for (const auto& known : kDscpNames) {
    if (absl::EqualsIgnoreCase(text, known.name)) return known.dscp;
  }
  return std::nullopt;
}

absl::StatusOr<TrafficClassMap> ParseTrafficClassMap(absl::string_view text) {
  TrafficClassMap map;
  if (text.empty()) return map;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    const size_t colon = entry.find(':');
    int id = 0;
    int dscp = 0;
    if (colon == absl::string_view::npos || !ParseNumber(entry.substr(0, colon), kTrafficClassMax, &id) ||
        !ParseDscp(entry.substr(colon + 1), &dscp)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", entry, "' is not ID:DSCP with an id from 0 to ", kTrafficClassMax,
                       " and a DSCP that is a name (cs0 to cs7, af11 to af43, ef, va, le, df) or 0 to ", kDscpMax));
    }
    if (!map.emplace(id, dscp).second) return absl::InvalidArgumentError(absl::StrCat("id ", id, " comes twice"));
  }
  return map;
}

absl::StatusOr<int> ResolveTrafficClass(int value, const TrafficClassMap& map) {
  if (const auto mapped = map.find(value); mapped != map.end()) return mapped->second << 2;
  if (value >= 0 && value <= kTrafficClassMax) return value & ~kEcnBits;
  return absl::InvalidArgumentError(absl::StrCat("traffic class ", value, " is out of range: it is 0 to ",
                                                 kTrafficClassMax, " (the DSCP times 4), or -1 for none"));
}

absl::StatusOr<int> ResolveTrafficClass(const AskedClass& asked, const TrafficClassMap& map) {
  return asked.named ? asked.value : ResolveTrafficClass(asked.value, map);
}

std::string TrafficClassSuffix(int octet) {
  if (octet == kNoTrafficClass) return "";
  const int dscp = DscpOf(octet);
  for (const auto& known : kDscpNames) {
    if (known.dscp == dscp) return absl::StrCat(", dscp ", dscp, " (", known.name, ")");
  }
  return absl::StrCat(", dscp ", dscp);
}

}  // namespace tcpx
