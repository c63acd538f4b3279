// options.h: the command line of rma_bench, as the options that net_bench's parts take.
//
// Threads: any; pure.
// Errors:  kInvalidArgument with one sentence for the user.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/net_bench/options.h"

namespace tcpx {
namespace bench {

absl::StatusOr<Options> ParseRmaOptions(const std::vector<std::string>& arguments);
const char* RmaUsageText();

}  // namespace bench
}  // namespace tcpx
