#include "bench/net_bench/wired.h"

#include <errno.h>
#include <glob.h>
#include <unistd.h>

#include <climits>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace tcpx {
namespace bench {
namespace {

constexpr char kScript[] = "bench/netns/wired.sh";

absl::StatusOr<std::string> OwnPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return ErrnoStatus(errno, "/proc/self/exe");
  return std::string(path, static_cast<size_t>(length));
}

// Among what Bazel laid next to the program, or in the repository that is the current folder.
absl::StatusOr<std::string> FindScript(const std::string& own_path) {
  glob_t found = {};
  const std::string pattern = absl::StrCat(own_path, ".runfiles/*/", kScript);
  std::string script;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) script = found.gl_pathv[0];
  globfree(&found);
  if (!script.empty()) return script;
  if (access(kScript, R_OK) == 0) return std::string(kScript);
  return absl::NotFoundError(absl::StrCat("--wire: no ", kScript, " next to the program or in this folder"));
}

}  // namespace

std::vector<std::string> WiredArguments(const Options& options, const std::vector<std::string>& arguments,
                                        const std::string& net_bench) {
  std::vector<std::string> all = {"--profile", options.wire, "--net-bench", net_bench};
  if (!options.wire_settings.empty()) all.insert(all.end(), {"--set", options.wire_settings});
  if (!options.plugin.empty()) all.insert(all.end(), {"--plugin", options.plugin});
  all.push_back("--");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--wire" || argument == "--wire-set" || argument == "--plugin") {
      ++i;  // its value
    } else if (!absl::StartsWith(argument, "--wire=") && !absl::StartsWith(argument, "--wire-set=") &&
               !absl::StartsWith(argument, "--plugin=")) {
      all.push_back(argument);
    }
  }
  return all;
}

absl::Status RunWired(const Options& options, const std::vector<std::string>& arguments) {
  const absl::StatusOr<std::string> own_path = OwnPath();
  if (!own_path.ok()) return own_path.status();
  const absl::StatusOr<std::string> script = FindScript(*own_path);
  if (!script.ok()) return script.status();
  std::vector<std::string> all = WiredArguments(options, arguments, *own_path);
  all.insert(all.begin(), {"bash", *script});
  std::vector<char*> pointers;
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execvp("bash", pointers.data());
  return ErrnoStatus(errno, "bash");
}

}  // namespace bench
}  // namespace tcpx
