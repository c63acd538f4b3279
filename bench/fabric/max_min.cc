#include "bench/fabric/max_min.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace tcpx {
namespace fabric {
namespace {

using Level = std::pair<double, int>;  // at which a link is full
using Levels = std::priority_queue<Level, std::vector<Level>, std::greater<Level>>;

std::vector<int> ByCap(const std::vector<Flow>& flows) {
  std::vector<int> capped;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (flows[i].cap < kUnlimited) capped.push_back(static_cast<int>(i));
  }
  std::sort(capped.begin(), capped.end(), [&](int a, int b) {
    const Flow& one = flows[static_cast<size_t>(a)];
    const Flow& other = flows[static_cast<size_t>(b)];
    return one.cap / one.weight < other.cap / other.weight;
  });
  return capped;
}

}  // namespace

void MaxMin::Index(const std::vector<Flow>& flows) {
  indexed_.assign(capacities_.size(), Link());
  for (const Flow& flow : flows) {
    for (int i = 0; i < flow.count; ++i) {
      Link& link = indexed_[static_cast<size_t>(flow.links[static_cast<size_t>(i)])];
      link.weight += flow.weight;
      ++link.end;
    }
  }
  int at = 0;
  for (Link& link : indexed_) {
    link.begin = at;
    at += std::exchange(link.end, at);
  }
  crossing_.resize(static_cast<size_t>(at));
  for (size_t f = 0; f < flows.size(); ++f) {
    for (int i = 0; i < flows[f].count; ++i) {
      Link& link = indexed_[static_cast<size_t>(flows[f].links[static_cast<size_t>(i)])];
      crossing_[static_cast<size_t>(link.end++)] = static_cast<int>(f);
    }
  }
}

void MaxMin::Freeze(Flow* flow, double rate, int bottleneck) {
  flow->rate = rate;
  flow->bottleneck = bottleneck;
  if (bottleneck >= 0) ++links_[static_cast<size_t>(bottleneck)].held;
  for (int i = 0; i < flow->count; ++i) {
    Link& link = links_[static_cast<size_t>(flow->links[static_cast<size_t>(i)])];
    link.left -= rate;
    link.weight -= flow->weight;
  }
}

void MaxMin::Solve(std::vector<Flow>* flows) {
  Index(*flows);
  SolveAgain(flows);
}

// A link's level only rises as others fill: one that is popped too early goes back.
void MaxMin::SolveAgain(std::vector<Flow>* flows) {
  links_ = indexed_;
  for (Flow& flow : *flows) flow.rate = -1;
  std::vector<Level> first;
  for (size_t i = 0; i < links_.size(); ++i) {
    links_[i].left = capacities_[i];
    if (links_[i].begin != links_[i].end) first.emplace_back(links_[i].level(), static_cast<int>(i));
  }
  Levels levels(std::greater<Level>(), std::move(first));
  const std::vector<int> capped = ByCap(*flows);
  size_t next = 0;
  while (!levels.empty() || next < capped.size()) {
    const double full = levels.empty() ? kUnlimited : levels.top().first;
    if (next < capped.size()) {
      Flow& flow = (*flows)[static_cast<size_t>(capped[next])];
      if (flow.rate >= 0 || flow.cap / flow.weight <= full) {
        ++next;
        if (flow.rate < 0) Freeze(&flow, flow.cap, -1);
        continue;
      }
    }
    const int id = levels.top().second;
    const Link& link = links_[static_cast<size_t>(id)];
    levels.pop();
    if (link.weight <= 1e-9) continue;
    const double level = link.level();
    if (level > full * (1 + 1e-12)) {
      levels.push({level, id});
      continue;
    }
    for (int i = link.begin; i < link.end; ++i) {
      Flow& flow = (*flows)[static_cast<size_t>(crossing_[static_cast<size_t>(i)])];
      if (flow.rate < 0) Freeze(&flow, level * flow.weight, id);
    }
  }
}

}  // namespace fabric
}  // namespace tcpx
