// net_bench: drives an NCCL network plugin as NCCL's proxy thread does, and measures it compared with bare sockets.
#include <stdio.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/net_bench/launch.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/wired.h"
#include "common/build_info.h"

namespace tcpx {
namespace bench {
namespace {

int Main(const std::vector<std::string>& arguments) {
  absl::StatusOr<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    fprintf(stderr, "net_bench: %s\nnet_bench --help explains\n", std::string(options.status().message()).c_str());
    return kExitUsage;
  }
  if (options->help) {
    fputs(UsageText(), stdout);
    return 0;
  }
  if (options->version) {
    printf("net_bench %s, build id %s\n", kVersion, BuildId().c_str());
    return 0;
  }
  MeanFileHere(&options->plugin);
  MeanFileHere(&options->vs);
  if (!options->wire.empty()) return Fail(*options, RunWired(*options, arguments));
  return Launch(*options);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::bench::Main(std::vector<std::string>(argv + 1, argv + argc)); }
