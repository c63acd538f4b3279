// Which pairs of hosts are asked at the same time.
#include <algorithm>
#include <utility>
#include <vector>

#include "tools/doctor/hosts.h"

namespace tcpx {
namespace doctor {

// As in a tournament: one seat stays, the others move on by one each round. An odd number has a seat that is empty.
std::vector<std::vector<std::pair<int, int>>> PairRounds(int hosts, int at_once) {
  std::vector<std::vector<std::pair<int, int>>> rounds;
  const int moving = hosts + hosts % 2 - 1;
  for (int round = 0; round < moving; ++round) {
    size_t left = 0;  // in the last of `rounds`
    for (int seat = 0; seat <= moving / 2; ++seat) {
      const int one = (round + seat) % moving;
      const int other = seat == 0 ? moving : (round + moving - seat) % moving;
      if (std::max(one, other) >= hosts) continue;
      if (left == 0) rounds.emplace_back();
      left = left == 0 ? static_cast<size_t>(at_once) - 1 : left - 1;
      rounds.back().emplace_back(std::min(one, other), std::max(one, other));
    }
  }
  return rounds;
}

}  // namespace doctor
}  // namespace tcpx
