#include "tools/parameters/pages.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/params.h"

namespace tcpx {
namespace {

constexpr char kIntroduction[] =
    R"(# Parameters

The plugin reads these environment variables once, at its first init. Most jobs need none of them.

- Set `NCCL_NET=tcpx` too: if the plugin can't be loaded or has no device, NCCL then stops with an error instead of
  silently using its own sockets.
- Lines `NAME=VALUE` in `~/.nccl.conf` and `/etc/nccl.conf` work for all of them, `TCPX_*` too: before NCCL loads a
  plugin, it puts those that are not set yet into the environment of the process.
- A size may end in K, M or G, also written KB or KiB: powers of 1024. A time may have decimals. A switch takes `on`,
  `true`, `yes` or `1`, and `off`, `false`, `no` or `0`, in any case of letters.
- An invalid or out-of-range value is ignored with a WARN, and the default is used. Exception: if a parameter about
  encryption or the secret is invalid or empty, or a name is almost that of one, every listen and connect fails with the
  reason. Only NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD are clamped, as in NCCL, with a WARN. Any other empty
  value counts as unset.
- A `TCPX_` name that is not on this page causes a WARN that names the closest one. Names that start with `TCPX_TEST_`
  belong to the project's tests; if the library reads one, a WARN says so. A name that an earlier build had causes a
  WARN that says what to do instead.
- With `NCCL_DEBUG=INFO` one line of the log has the version, the build and the `TCPX_` values in effect. The build id
  is the linker's checksum of the library (`readelf -n` shows it), not a commit: ranks whose ids differ loaded different
  files.
- `tcpx_doctor --parameters` prints all of them with their values and where these come from.
- `NCCL_*` variables are NCCL's own. If they have a meaning here, it is NCCL's.

This page is generated from the table in `common/params_table.cc`; after a change there, run
`bazel run //tools/parameters:write_page > docs/parameters.md`.
)";

struct Group {
  Audience audience;
  const char* heading;
  const char* text;
};

constexpr Group kGroups[] = {
    {Audience::kMost, "What a user may need",
     "For users who run jobs. Set one only where the automatic choice is wrong."},
    {Audience::kOperator, "What an operator may need",
     "For cluster operators: ports, CPUs, links, DSCP marks, and where statistics are written. Set them for all jobs,\n"
     "for example in `/etc/nccl.conf`."},
    {Audience::kFew, "The rest", "For finding faults, for tuning with measurements, and for rare set-ups."},
};

// `|` would end a cell.
std::string Row(const Parameter& parameter) {
  return absl::StrCat("| [", parameter.name, "](#", absl::AsciiStrToLower(parameter.name), ") | ", parameter.brief,
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
                    "\n\n| Variable | What it does | Default | Allowed |\n|---|---|---|---|\n");
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
