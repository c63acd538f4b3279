#include "tools/doctor/parameters.h"

#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/escape.h"
#include "common/params.h"

namespace tcpx {
namespace doctor {
namespace {

struct Row {
  const Parameter* parameter;
  std::string value;
  std::string from;
};

// Where a valid value comes from; "default" where there is none, with the value that is not allowed.
std::string FromOf(const Parameter& parameter, const Origins& origins, const std::vector<std::string>& warnings) {
  const char* const set = getenv(parameter.name);
  if (set == nullptr || *set == '\0') return "default";
  const auto file = origins.find(parameter.name);
  std::string from = file == origins.end() ? "environment" : file->second;
  for (const std::string& warning : warnings) {
    const bool ignored = absl::StartsWith(warning, absl::StrCat(parameter.name, " is \""));
    if (ignored) return absl::StrCat("default; not allowed: \"", set, "\" (", from, ")");
  }
  return from;
}

std::vector<Row> Rows(const Origins& origins) {
  std::vector<std::string> warnings;
  const Options options = LoadOptions(nullptr, &warnings);
  if (!options.refused.empty()) warnings.push_back(options.refused);
  std::vector<Row> rows;
  for (const Parameter& parameter : Parameters()) {
    Row row = {&parameter, ValueOf(parameter, options), FromOf(parameter, origins, warnings)};
    const bool product = options.lanes != 0 && row.from == "default";
    if (product && parameter.name == absl::string_view("TCPX_LANES")) {
      row.from = "NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD";
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string ParametersText(const Origins& origins) {
  const std::vector<Row> rows = Rows(origins);
  size_t names = 0;
  size_t values = 0;
  size_t origin = 0;
  for (const Row& row : rows) {
    names = std::max(names, std::string(row.parameter->name).size());
    values = std::max(values, row.value.size());
    origin = std::max(origin, row.from.size());
  }
  const auto line = [&](absl::string_view name, absl::string_view value, absl::string_view from, const char* brief) {
    return absl::StrFormat("%-*s  %-*s  %-*s  %s\n", static_cast<int>(names), name, static_cast<int>(values), value,
                           static_cast<int>(origin), from, brief);
  };
  std::string text = line("PARAMETER", "VALUE", "FROM", "WHAT IT DOES");
  for (const Row& row : rows) {
    absl::StrAppend(&text, line(row.parameter->name, row.value, row.from, row.parameter->brief));
  }
  return text;
}

std::string ParametersJson(const Origins& origins, const std::string& head) {
  std::vector<std::string> lines;
  for (const Row& row : Rows(origins)) {
    // The pages' marks of code.
    std::string allowed = AllowedText(*row.parameter);
    allowed.erase(std::remove(allowed.begin(), allowed.end(), '`'), allowed.end());
    lines.push_back(absl::StrCat("  {\"name\": ", JsonText(row.parameter->name), ", \"value\": ", JsonText(row.value),
                                 ", \"default\": ", JsonText(DefaultText(*row.parameter)),
                                 ", \"from\": ", JsonText(row.from), ", \"allowed\": ", JsonText(allowed),
                                 ", \"does\": ", JsonText(row.parameter->brief), "}"));
  }
  return absl::StrCat("{", head, ", \"parameters\": [\n", absl::StrJoin(lines, ",\n"), "\n]}\n");
}

}  // namespace doctor
}  // namespace tcpx
