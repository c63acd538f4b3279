#include "tests/plugin/traffic/modes.h"

#include "tests/support/own_network.h"

namespace tcpx {

std::vector<LoopbackSettings> AllModes(const std::vector<int>& families) {
  std::vector<LoopbackSettings> all;
  for (int family : families) {
    for (int lanes : {1, 2, 4, 8}) {
      LoopbackSettings settings;
      settings.family = family;
      settings.lanes = lanes;
      all.push_back(settings);
      settings.threads = 2;
      for (const char* engine : {"io_uring", "epoll"}) {
        settings.engine = engine;
        all.push_back(settings);
      }
    }
    LoopbackSettings zero_copy;
    zero_copy.family = family;
    zero_copy.lanes = 4;
    zero_copy.threads = 2;
    zero_copy.engine = "io_uring";
    zero_copy.environment["TCPX_ZEROCOPY"] = "on";
    all.push_back(zero_copy);
  }
  return all;
}

std::string ModeName(const ::testing::TestParamInfo<LoopbackSettings>& info) { return info.param.Describe('_'); }

std::string ReasonToSkip(const LoopbackSettings& settings) {
  std::string reason;
  if (settings.family == AF_INET6 && !InOwnNetwork()) {
    return "no network namespace, so no IPv6 address that NCCL's rules accept";
  }
  if (settings.threads > 0 && settings.engine == "io_uring" && !IoUringWorks(&reason)) return "no io_uring: " + reason;
  return "";
}

}  // namespace tcpx
