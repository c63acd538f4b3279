// rma_bench: drives a library of one-sided transfers as NCCL's proxy thread does, and measures it compared with bare
// sockets, with isend and irecv, and with a second library.
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/net_bench/launch.h"
#include "bench/rma_bench/options.h"
#include "common/build_info.h"
#include "nccl/client/net_client.h"

namespace tcpx {
namespace bench {
namespace {

int Main(const std::vector<std::string>& arguments) {
  absl::StatusOr<Options> options = ParseRmaOptions(arguments);
  if (!options.ok()) {
    fprintf(stderr, "rma_bench: %s\nrma_bench --help explains\n", std::string(options.status().message()).c_str());
    return kExitUsage;
  }
  if (options->help) {
    fputs(RmaUsageText(), stdout);
    return 0;
  }
  if (options->version) {
    printf("rma_bench %s, build id %s\n", kVersion, BuildId().c_str());
    return 0;
  }
  MeanFileHere(&options->plugin);
  MeanFileHere(&options->vs);
  setenv("TCPX_RMA", "1", /*overwrite=*/0);
  // A library may have the one table without the other.
  options->send_receive = options->raw && NetClient::Open(options->plugin).ok();
  return Launch(*options);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::bench::Main(std::vector<std::string>(argv + 1, argv + argc)); }
