#include "net_socket/rma/rma_counts.h"

#include <algorithm>

#include "common/log.h"

namespace tcpx {
namespace {

void AddTo(RmaNumbers* sum, const RmaNumbers& more) {
  AddCounts(kRmaCounters, more, sum);
  sum->under_way += more.under_way;
  sum->under_way_max = std::max(sum->under_way_max, more.under_way_max);
}

}  // namespace

void RmaGroupCounts::Count(const RmaOperation& operation, bool in_batch) {
  if (operation.has_signal) signals.Add();
  if (operation.bytes == 0) return;
  bytes.Add(operation.bytes);
  (operation.get ? gets : puts).Add();
  if (!operation.get) (in_batch ? in_batches : following).Add();
}

void RmaGroupCounts::SetUnderWay(size_t now) {
  under_way = now;
  if (now > under_way_max) under_way_max = now;
}

RmaNumbers RmaGroupCounts::numbers() const {
  return {groups, puts, signals, gets, bytes, in_batches, following, refused, under_way, under_way_max};
}

void RmaGroupCounts::Log(uint32_t rank, size_t ranks) const {
  const RmaNumbers sum = numbers();
  if (sum.puts + sum.signals + sum.gets == 0) return;
  TCPX_INFO(
      "one-sided transfers of rank %u of %u: %u puts (%u batched), %u signals, %u gets, %u bytes; at most %u under way",
      rank, ranks, sum.puts, sum.in_batches, sum.signals, sum.gets, sum.bytes, sum.under_way_max);
}

void RmaCounts::Join(const RmaGroupCounts* group) {
  MutexLock lock(mutex_);
  groups_.insert(group);
  ++gone_.groups;
}

void RmaCounts::Leave(const RmaGroupCounts* group) {
  MutexLock lock(mutex_);
  groups_.erase(group);
  if (groups_.empty()) groups_ = {};  // Nothing is left of it at an unload.
  RmaNumbers last = group->numbers();
  last.under_way = 0;
  AddTo(&gone_, last);
}

RmaNumbers RmaCounts::ReadRma() {
  MutexLock lock(mutex_);
  RmaNumbers sum = gone_;
  for (const RmaGroupCounts* group : groups_) AddTo(&sum, group->numbers());
  return sum;
}

}  // namespace tcpx
