// group_peers.h: which ranks of a group have closed it, whether that is the end for this one, and connections that may
// say later which rank they come from, or never do.
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
#include "common/log.h"

namespace tcpx {

class GroupPeers {
 public:
  // How long an abort is no error here: ranks that close at the same time need none.
  static constexpr int64_t kGraceNs = 100'000'000;

  GroupPeers(size_t ranks, int64_t peer_timeout_ns) : gone_(ranks), peer_timeout_ns_(peer_timeout_ns) {}

  void Closed(uint32_t rank, bool orderly, int64_t now_ns) {
    gone_[rank] = true;
    First* const first = orderly ? &orderly_ : &aborted_;
    if (first->at_ns == 0) *first = {rank, now_ns};
  }
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

// Anyone who has the ticket can open a connection. It can end nothing but itself: only a few are kept, each for a
// limited time, and the log gets at most one line a second. Once every rank has come nobody else is expected, so that
// they are seldom looked for.
class RmaStrangers {
 public:
  // Too low: a crowd pushes out ranks before they speak; too high: descriptors. A guess.
  static constexpr size_t kMax = 4;

  // `ranks` are to come.
  explicit RmaStrangers(size_t ranks) : missing_(ranks) {}

  // One has said which rank it comes from.
  void Greeted() { --missing_; }
  // Whether to look for new connections.
  bool MayCome() { return missing_ > 0 || ++looks_ % kLooks == 0; }
  void LookAtOnce() { looks_ = kLooks - 1; }
  // One was closed: because of `why`, or it has said nothing in time (OK).
  void Closed(uint32_t rank, const absl::Status& why);

 private:
  // A look takes a sixth of the time in which a group that waits asks its connections (callgrind). It also tells that
  // the communicator has failed, which a caller that asks without end learns from one in so many.
  static constexpr uint32_t kLooks = 64;

  size_t missing_;
  uint32_t looks_ = 0;
  LineLimit lines_;
};

}  // namespace tcpx
