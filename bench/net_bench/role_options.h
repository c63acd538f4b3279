// role_options.h: --listen and --connect: two machines instead of two processes.
//
// Threads: none; pure.
// Errors:  kInvalidArgument with one sentence for the user, when the command line is parsed.
#pragma once

#include "bench/command_line/option_parser.h"
#include "bench/net_bench/options.h"

namespace tcpx {
namespace bench {

// Sets role, host and port of `options`, which outlives `parser`.
void AddRoleOptions(Options* options, OptionParser* parser);

}  // namespace bench
}  // namespace tcpx
