// Files of NCCL's own variables.
#include <stdlib.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/small_file.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

bool IsOfName(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// As NCCL: a line is NAME=VALUE, and what the environment has already stays.
void ReadFile(const std::string& path, Report* report, std::map<std::string, std::string>* origins) {
  const std::optional<std::string> text = ReadSmallFile(path);
  if (!text.has_value()) return;
  int count = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos || equals == 0 || line[0] == '#') continue;
    const std::string name(line.substr(0, equals));
    if (!std::all_of(name.begin(), name.end(), IsOfName)) {
      report->Problem("variable", absl::StrCat(path, ": a line sets a variable named '", absl::CHexEscape(name), "'"),
                      absl::StrCat("write NAME=VALUE in ", path, ", without export, blanks or a byte order mark"));
      continue;
    }
    if (origins != nullptr && getenv(name.c_str()) == nullptr) (*origins)[name] = path;
    setenv(name.c_str(), std::string(line.substr(equals + 1)).c_str(), /*overwrite=*/0);
    ++count;
  }
  report->Ok("variable", absl::StrCat(path, ": read, as NCCL does; ", count, " of its lines set a variable"));
}

}  // namespace

void ReadNcclConf(Report* report, std::map<std::string, std::string>* origins) {
  const char* named = getenv("NCCL_CONF_FILE");
  const char* home = getenv("HOME");
  if (named != nullptr && *named != '\0') {
    ReadFile(named, report, origins);
  } else if (home != nullptr) {
    ReadFile(absl::StrCat(home, "/.nccl.conf"), report, origins);
  }
  ReadFile("/etc/nccl.conf", report, origins);
}

}  // namespace doctor
}  // namespace tcpx
