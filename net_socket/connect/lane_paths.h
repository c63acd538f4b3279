// lane_paths.h: which path each lane of a connection has, its own or another's, and where it may go instead. Pure.
//
// Threads: one at a time. Units: lanes by index. Errors: none.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "net_socket/nic/lane_plan.h"

namespace tcpx {

// By the same interface to the same address.
bool SamePath(const LanePath& one, const LanePath& other);

class LanePaths {
 public:
  using Serves = std::function<bool(const LanePath& path)>;
  using Carries = std::function<bool(int lane)>;

  // The first `open` lanes are; the others are only places. Below 0: all.
  explicit LanePaths(std::vector<LanePath> own, int open = -1);

  int lanes() const { return static_cast<int>(own_.size()); }
  const LanePath& own(int lane) const { return own_[static_cast<size_t>(lane)]; }
  const LanePath& at(int lane) const { return at_[static_cast<size_t>(lane)]; }
  bool away(int lane) const { return !SamePath(own(lane), at(lane)); }
  // It is open from here on.
  void Place(int lane, const LanePath& path) {
    at_[static_cast<size_t>(lane)] = path;
    open_[static_cast<size_t>(lane)] = true;
  }
  // It goes nowhere, and will begin with its own path again.
  void Close(int lane) {
    at_[static_cast<size_t>(lane)] = own(lane);
    open_[static_cast<size_t>(lane)] = false;
  }

  // Another path than `taken`, of those that serve: one by which a lane goes that carries, with the fewest lanes; else
  // any that is some lane's own. The `turn`-th of them, round and round; null: there is none.
  const LanePath* Other(const LanePath& taken, int turn, const Serves& serves, const Carries& carries) const;

 private:
  const std::vector<LanePath> own_;
  std::vector<LanePath> at_;
  std::vector<bool> open_;
};

}  // namespace tcpx
