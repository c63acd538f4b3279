// Which steps of a lane that is dialled may follow which.
#include "net_socket/connect/dial_lane.h"

#include <gtest/gtest.h>

#include <string>

namespace tcpx {
namespace {

TEST(DialLaneTest, EveryPairOfSteps) {
  const char* const names[kDialSteps] = {"idle", "dialling", "hello", "answered"};
  std::string moves;
  for (int from = 0; from < kDialSteps; ++from) {
    for (int to = 0; to < kDialSteps; ++to) {
      if (MayMove(static_cast<DialStep>(from), static_cast<DialStep>(to))) {
        moves += std::string(names[from]) + ">" + names[to] + " ";
      }
    }
  }
  EXPECT_EQ("idle>dialling dialling>idle dialling>hello hello>idle hello>answered answered>idle ", moves);
}

}  // namespace
}  // namespace tcpx
