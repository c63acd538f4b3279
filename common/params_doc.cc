#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/params.h"
#include "common/params_text.h"

namespace tcpx {
namespace {

constexpr char kIntroduction[] =
    "# Parameters\n"
    "\n"
    "Every environment variable that the plugin reads once at its start. This page is generated from the table in\n"
    "`common/params_table.cc`; after a change there:\n"
    "\n"
    "    bazel run //common:parameters_doc > docs/parameters.md\n"
    "\n"
    "- A byte size may end in K, M or G: powers of 1024. A duration may have decimals.\n"
    "- A value that can't be read or is out of range gives a warning in the log, and the default is used. Nothing is\n"
    "  clamped. An empty value is an unset one.\n"
    "- `NCCL_*` variables are NCCL's own and keep their meaning where they have one here.\n"
    "\n";

// `|` would end a cell.
std::string Row(const Parameter& parameter) {
  return absl::StrCat("| [", parameter.name, "](#", absl::AsciiStrToLower(parameter.name), ") | ", TypeText(parameter),
                      " | ", UnitText(parameter), " | ", DefaultText(parameter), " | ", AllowedText(parameter), " |\n");
}

// Breaks lines between words.
std::string Wrapped(absl::string_view text) {
  constexpr size_t kColumns = 116;
  std::string out;
  size_t column = 0;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    const bool breaks = column + 1 + word.size() > kColumns;
    if (column > 0) out += breaks ? '\n' : ' ';
    column = breaks || column == 0 ? word.size() : column + 1 + word.size();
    absl::StrAppend(&out, word);
  }
  return out;
}

std::string Section(const Parameter& parameter) {
  return absl::StrCat("\n## ", parameter.name, "\n\n", Wrapped(parameter.help), "\n");
}

}  // namespace

std::string ParametersMarkdown() {
  std::string text = kIntroduction;
  absl::StrAppend(&text, "| Variable | Type | Unit | Default | Allowed |\n", "|---|---|---|---|---|\n");
  for (const Parameter& parameter : Parameters()) absl::StrAppend(&text, Row(parameter));
  for (const Parameter& parameter : Parameters()) absl::StrAppend(&text, Section(parameter));
  return text;
}

}  // namespace tcpx
