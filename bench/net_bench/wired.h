// wired.h: net_bench --wire PROFILE: the same run between two namespaces that a relay joins (bench/netns/wired.sh).
//
// Threads: the calling one, which becomes the script.
// Errors:  RunWired returns only when the script can't be found (kNotFound) or started (the errno's text).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/net_bench/options.h"

namespace tcpx {
namespace bench {

// `arguments` are those that `options` were parsed from.
absl::Status RunWired(const Options& options, const std::vector<std::string>& arguments);

// The script's arguments: what --wire says becomes its own, all else is handed on to net_bench inside.
std::vector<std::string> WiredArguments(const Options& options, const std::vector<std::string>& arguments,
                                        const std::string& net_bench);

}  // namespace bench
}  // namespace tcpx
