// dial_ways.h: the ways in which one attempt of a lane binds its socket to leave this host, one after the other
// (PathProfile::ways).
//
// Threads: the reactor.
// Lifetime: borrows the runtime and the path's interface.
// Units:   nanoseconds.
// Errors:  those of the kernel: ErrnoStatus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fd.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/path_profile.h"

namespace tcpx {

// Its interface has no address of the peer's family.
inline bool IsForeign(const LanePath& path) { return path.nic->interface.address.family() != path.peer.family(); }

class DialWays {
 public:
  explicit DialWays(Runtime* runtime) : runtime_(runtime) {}

  // An attempt begins, with the way that found the peer last. `facts`: all except what the path says.
  void Begin(const LanePath& path, PathFacts facts);
  // A socket that connects by the current way.
  absl::StatusOr<OwnedFd> Open();
  // Continues with the next way. False: there is none.
  bool Next() {
    if (tried_ + 1 >= profile_.ways.size()) return false;
    ++tried_;
    return true;
  }
  // The current way has found the peer.
  void Found();
  // What a connect has ended with.
  absl::Status Ended(int err);
  // How long the current way may take, if all have `all_ns` together. `before`, `after`: the ways of another address
  // were tried, or may be tried after these.
  int64_t PatienceNs(int64_t all_ns, bool before, bool after) const;

  // The kernel has said at once that no route leads there.
  bool no_route() const { return no_route_; }
  // The first error that says more than that nobody answered; until Forget.
  const std::string& first_error() const { return first_error_; }
  void Forget() { first_error_.clear(); }
  // Interface and peer, as LaneNotes calls them.
  std::string Key() const;
  // The profile of the socket that was opened last.
  PathProfile TakeProfile() { return std::move(profile_); }

 private:
  LeaveBy way() const { return profile_.ways[(first_ + tried_) % profile_.ways.size()]; }

  Runtime* const runtime_;
  LanePath path_;
  PathProfile profile_;
  // In profile_.ways: where this attempt began, how many it has tried before the current one.
  size_t first_ = 0;
  size_t tried_ = 0;
  bool same_host_ = false;
  bool no_route_ = false;
  std::string first_error_;
};

}  // namespace tcpx
