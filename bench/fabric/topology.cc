#include "bench/fabric/topology.h"

#include <algorithm>
#include <numeric>

namespace tcpx {
namespace fabric {
namespace {

using Kind = TopologySpec::Kind;

}  // namespace

Topology::Topology(const TopologySpec& spec, MaxMin* links) : spec_(spec), links_(links) {
  first_nic_ = links->AddLink(kUnlimited) + 1;
  for (int host = 0; host < spec.hosts; ++host) {
    const double nic = host == spec.slow_host ? spec.nic / 2 : spec.nic;
    for (int i = 0; i < 2 * spec.rails; ++i) (void)links->AddLink(nic);
  }
  first_path_ = first_nic_ + 2 * spec.rails * spec.hosts;
  if (spec.kind == Kind::kLeafSpine) AddSpines();
  if (spec.kind == Kind::kPaths) AddPaths();
  links_end_ = links->size();
}

void Topology::AddPaths() {
  spines_ = spec_.perfect ? 1 : static_cast<int>(spec_.paths.size());
  if (spec_.perfect) {
    (void)links_->AddLink(std::accumulate(spec_.paths.begin(), spec_.paths.end(), 0.0));
  } else {
    for (double rate : spec_.paths) (void)links_->AddLink(rate);
  }
}

void Topology::AddSpines() {
  spines_ = spec_.perfect ? 1 : spec_.spines;
  const double up = spec_.nic * spec_.leaf_hosts / spec_.oversubscription / spines_;
  for (int i = 0; i < 2 * spines_ * leaves(); ++i) (void)links_->AddLink(up);
}

void Topology::Route(int from, int to, int rail, uint64_t port, Flow* flow) const {
  const int rails = spec_.rails;
  flow->cap = spec_.perfect ? kUnlimited : spec_.per_flow;
  flow->Cross(first_nic_ + 2 * (from * rails + rail));
  flow->Cross(first_nic_ + 2 * (to * rails + rail) + 1);
  const int spine = static_cast<int>(port % static_cast<uint64_t>(spines_));
  if (spec_.kind == Kind::kPaths && !spec_.paths.empty()) flow->Cross(first_path_ + spine);
  const int leaf = from / spec_.leaf_hosts, other = to / spec_.leaf_hosts;
  if (spec_.kind != Kind::kLeafSpine || leaf == other) return;
  flow->Cross(first_path_ + 2 * (leaf * spines_ + spine));
  flow->Cross(first_path_ + 2 * (other * spines_ + spine) + 1);
}

double Topology::WaitFor(int link, int flows) const {
  return std::min(flows * spec_.queue_bytes, spec_.buffer) / links_->capacity(link);
}

void Topology::FillQueues() {
  if (!queues()) return;
  waits_.resize(static_cast<size_t>(links_end_));
  for (int link = 0; link < links_end_; ++link) waits_[static_cast<size_t>(link)] = WaitFor(link, links_->held(link));
}

int64_t Topology::WaitUs(const Flow& flow, bool own) const {
  double seconds = own && flow.bottleneck < 0 ? spec_.queue_bytes / flow.cap : 0;
  for (int i = 0; i < flow.count; ++i) {
    const int link = flow.links[static_cast<size_t>(i)];
    if (link >= links_end_) continue;
    seconds +=
        !own && link == flow.bottleneck ? WaitFor(link, links_->held(link) - 1) : waits_[static_cast<size_t>(link)];
  }
  return static_cast<int64_t>(seconds * 1e6);
}

}  // namespace fabric
}  // namespace tcpx
