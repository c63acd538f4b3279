// group_peers.h: which ranks of a group have closed it, and whether that is the end for this one.
//
// Purpose: a rank that aborts says bye like one that is done. A rank that still has windows at its first
//          destroyContext counts as aborted, because a user with windows here may wait for a signal that can't come. If
//          NCCL uses host RMA alone it closes its windows in both cases: then only a timeout can decide.
// Threads: under the group's mutex.
// Units:   ns.
// Errors:  Check: kUnavailable, in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace tcpx {

class GroupPeers {
 public:
  // How long an abort is no error here: ranks that close at the same time need none.
  static constexpr int64_t kGraceNs = 100'000'000;

  GroupPeers(size_t ranks, int64_t peer_timeout_ns) : gone_(ranks), peer_timeout_ns_(peer_timeout_ns) {}

  void Closed(uint32_t rank, bool orderly, int64_t now_ns);
  bool gone(uint32_t rank) const { return gone_[rank]; }
  bool all_here() const { return orderly_.at_ns == 0 && aborted_.at_ns == 0; }
  // For a group with windows: whether it can go on without the peers that have closed.
  absl::Status Check(int64_t now_ns) const;

 private:
  struct First {
    uint32_t rank = 0;
    int64_t at_ns = 0;  // 0: none has
  };

  std::vector<bool> gone_;  // by rank
  const int64_t peer_timeout_ns_;
  First orderly_;
  First aborted_;
};

}  // namespace tcpx
