// modes.h: the combinations that the plugin's tests run in: who moves the bytes, over how many lanes, over which IP.
//
// Threads: any.
#ifndef TCPX_TESTS_PLUGIN_TRAFFIC_MODES_H_
#define TCPX_TESTS_PLUGIN_TRAFFIC_MODES_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/pair.h"

namespace tcpx {

// ({caller-driven, io_uring pool of 2, epoll pool of 2} x {1, 2, 4, 8 lanes}, and io_uring without copies) x
// `families`.
std::vector<LoopbackSettings> AllModes(const std::vector<int>& families);
// The name of a parameterized test.
std::string ModeName(const ::testing::TestParamInfo<LoopbackSettings>& info);
// Empty exactly when `settings` can run here; else why not.
std::string ReasonToSkip(const LoopbackSettings& settings);

}  // namespace tcpx

#endif  // TCPX_TESTS_PLUGIN_TRAFFIC_MODES_H_
