// rma_counts.h: what the groups of the process have done.
//
// Purpose: each group counts for itself, under its own mutex; the counts of a closed group are kept.
// Threads: any.
// Lifetime: the plugin's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "common/mutex.h"
#include "nccl/rma_api.h"
#include "net_socket/message/counts.h"
#include "net_socket/stats/counters.h"

namespace tcpx {

// One group's: written by one thread at a time, read by any.
class RmaGroupCounts : RmaNumbersOf<Counter> {
 public:
  // `in_batch`: a put's bytes share a message.
  void Count(const RmaOperation& operation, bool in_batch);
  void CountRefused() { refused.Add(); }
  void SetUnderWay(size_t now);
  RmaNumbers numbers() const;
  // One line, where there is something to say.
  void Log(uint32_t rank, size_t ranks) const;
};

class RmaCounts {
 public:
  void Join(const RmaGroupCounts* group);
  void Leave(const RmaGroupCounts* group);
  RmaNumbers ReadRma();

 private:
  Mutex mutex_;
  absl::flat_hash_set<const RmaGroupCounts*> groups_ TCPX_GUARDED_BY(mutex_);
  RmaNumbers gone_ TCPX_GUARDED_BY(mutex_);  // counts of closed groups; its `groups` counts all
};

}  // namespace tcpx
