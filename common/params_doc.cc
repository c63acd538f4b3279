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
    "Every environment variable that the plugin reads, once, at its first init. Most jobs need none of them.\n"
    "\n"
    "- Set `NCCL_NET=tcpx` besides: where the plugin can't be loaded or has no device, NCCL then says so and stops,\n"
    "  instead of going on with its own sockets in silence.\n"
    "- Lines `NAME=VALUE` of `~/.nccl.conf` and `/etc/nccl.conf` work for all of them, `TCPX_*` too: NCCL puts them\n"
    "  into the environment of the process before it loads a plugin, where a variable is not set already.\n"
    "- A size may end in K, M or G: powers of 1024. A time may have decimals. Every switch takes `on` or `1`, and\n"
    "  `off` or `0`.\n"
    "- A value that can't be read or is out of range gives a WARN in the log, and the default is used; of "
    "TCPX_ENCRYPT\n"
    "  it ends the loading, as an empty one does there. Nothing is\n"
    "  clamped but what NCCL clamps (NCCL_SOCKET_NTHREADS, NCCL_NSOCKS_PERTHREAD), with a WARN. Any other empty value "
    "is an\n"
    "  unset one. A `TCPX_` name that is not on this page gives a WARN with the nearest one that is, but for\n"
    "  `TCPX_TEST_` names: they belong to the project's tests, and one that the library itself reads gives a\n"
    "  WARN that it is in effect. A name of an earlier build that was removed gives a WARN with what to do instead.\n"
    "- With `NCCL_DEBUG=INFO` one line says which version and build this is and which `TCPX_` values are in effect. "
    "The build\n"
    "  id is the linker's sum over the library (`readelf -n` shows it), no commit: ranks whose ids differ loaded "
    "different\n"
    "  files.\n"
    "- `NCCL_*` variables are NCCL's own and keep their meaning where they have one here.\n"
    "\n"
    "This page is generated from the table in `common/params_table.cc`; after a change there:\n"
    "\n"
    "    bazel run //common:parameters_doc > docs/parameters.md\n";

struct Group {
  Audience audience;
  const char* heading;
  const char* text;
};

constexpr Group kGroups[] = {
    {Audience::kMost, "What a user may need", "Of who runs jobs: where they differ from what is found by itself."},
    {Audience::kOperator, "What an operator may need",
     "Of who runs the machines: ports, CPUs, links, marks, and where numbers go. Set for all jobs, such as in\n"
     "`/etc/nccl.conf`."},
    {Audience::kFew, "The rest", "To look for a fault, to tune what was measured, and for set-ups that few have."},
};

// `|` would end a cell.
std::string Row(const Parameter& parameter) {
  return absl::StrCat("| [", parameter.name, "](#", absl::AsciiStrToLower(parameter.name), ") | ", TypeText(parameter),
                      " | ", DefaultText(parameter), " | ", AllowedText(parameter), " |\n");
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
  return absl::StrCat("\n### ", parameter.name, "\n\n", Wrapped(parameter.help), "\n");
}

}  // namespace

std::string ParametersMarkdown() {
  std::string text = kIntroduction;
  for (const Group& group : kGroups) {
    absl::StrAppend(&text, "\n## ", group.heading, "\n\n", group.text,
                    "\n\n| Variable | Value | Default | Allowed |\n|---|---|---|---|\n");
    for (const Parameter& parameter : Parameters()) {
      if (parameter.audience == group.audience) absl::StrAppend(&text, Row(parameter));
    }
    for (const Parameter& parameter : Parameters()) {
      if (parameter.audience == group.audience) absl::StrAppend(&text, Section(parameter));
    }
  }
  return text;
}

}  // namespace tcpx
