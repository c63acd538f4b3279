// nccl_bench: runs NCCL's collectives over the network, checks every result, and proves which transport carried it.
#include <signal.h>
#include <stdio.h>

#include <string>
#include <vector>

#include "bench/nccl_bench/device.h"
#include "bench/nccl_bench/launch.h"
#include "bench/nccl_bench/options.h"
#include "bench/nccl_bench/rank.h"
#include "common/build_info.h"

namespace tcpx {
namespace nccl_bench {
namespace {

int Main(const std::vector<std::string>& arguments) {
  absl::StatusOr<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    fprintf(stderr, "nccl_bench: %s\nnccl_bench --help explains\n", std::string(options.status().message()).c_str());
    return 2;
  }
  if (options->help) {
    fputs(UsageText(), stdout);
    return 0;
  }
  if (options->version) {
    printf("nccl_bench %s, build id %s\n", kVersion, BuildId().c_str());
    return 0;
  }
  signal(SIGPIPE, SIG_IGN);
  absl::StatusOr<int> devices = DeviceCount();
  if (!devices.ok()) {
    fprintf(stderr, "nccl_bench: %s\n", std::string(devices.status().message()).c_str());
    return 1;
  }
  const bool is_child = !ProcessEnvironment(kChildVariable).empty();
  const bool launches = options->local > 0 || !options->nets.empty();
  return launches && !is_child ? Launch(*options, arguments, *devices) : RunRank(*options, *devices);
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::nccl_bench::Main(std::vector<std::string>(argv + 1, argv + argc)); }
