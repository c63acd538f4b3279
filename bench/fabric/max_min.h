// max_min.h: what each flow gets of links that many share: weighted max-min fair shares.
//
// Purpose: the long-term mean of TCP flows whose bottleneck has a queue. A weight says by how much one is luckier than
//          the others just now.
// Threads: one at a time. Units: bytes per second. Errors: none.
// Source:  progressive filling, D. Bertsekas and R. Gallager, Data Networks, section 6.5.2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tcpx {
namespace fabric {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

struct Flow {
  std::array<int32_t, 6> links{};
  int count = 0;  // of links
  double weight = 1;
  double cap = kUnlimited;
  // Results: what it gets, and which link gives no more; -1: it has its cap.
  double rate = 0;
  int bottleneck = -1;

  void Cross(int link) { links[static_cast<size_t>(count++)] = link; }
};

class MaxMin {
 public:
  int AddLink(double capacity) {
    capacities_.push_back(capacity);
    return static_cast<int>(capacities_.size()) - 1;
  }
  void SetCapacity(int link, double capacity) { capacities_[static_cast<size_t>(link)] = capacity; }
  int size() const { return static_cast<int>(capacities_.size()); }
  double capacity(int link) const { return capacities_[static_cast<size_t>(link)]; }

  // Flows whose bottleneck it is, as of the latest Solve.
  int held(int link) const { return links_[static_cast<size_t>(link)].held; }

  // Each flow crosses a link or has a cap.
  void Solve(std::vector<Flow>* flows);
  // The flows of the latest Solve, with the same links and weights: capacities and caps may differ.
  void SolveAgain(std::vector<Flow>* flows);

 private:
  struct Link {
    double left = 0;
    double weight = 0;  // of the flows that still grow
    int begin = 0;      // of its flows, in crossing_
    int end = 0;
    int held = 0;  // flows whose bottleneck it is

    double level() const { return left <= 0 ? 0 : left / weight; }
  };

  void Index(const std::vector<Flow>& flows);
  void Freeze(Flow* flow, double rate, int bottleneck);

  std::vector<double> capacities_;
  std::vector<Link> indexed_;  // without what is left
  std::vector<Link> links_;
  std::vector<int> crossing_;
};

}  // namespace fabric
}  // namespace tcpx
