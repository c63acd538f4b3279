// lane_socket.h: puts a path's profile on a lane's socket, on both ends.
//
// Threads: any. Units: bytes.
// Errors:  options that only cost speed (buffers, congestion control, pacing, marking) never fail a lane: one line of
//          the log for all lanes says what the kernel refused, a WARN where it was asked for.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/address.h"
#include "common/mutex.h"
#include "net_socket/nic/path_profile.h"

namespace tcpx {

// What is logged once per process, however many lanes it concerns, and how lanes last reached their peers.
class LaneNotes {
 public:
  // True exactly once for each text.
  bool First(const std::string& text) {
    MutexLock lock(mutex_);
    return said_.insert(text).second;
  }
  // How an interface last reached a peer's address: the next lane begins with that.
  std::optional<LeaveBy> KnownWay(const std::string& path) const {
    MutexLock lock(mutex_);
    const auto found = ways_.find(path);
    return found == ways_.end() ? std::nullopt : std::optional<LeaveBy>(found->second);
  }
  void LearnWay(const std::string& path, LeaveBy way) {
    MutexLock lock(mutex_);
    ways_[path] = way;
  }
  // How many bulk lanes a device needs towards a peer's address, as its latest connection there has found: the next one
  // begins with them. 0: not known.
  int KnownLanes(int device, const SocketAddress& peer) const {
    MutexLock lock(mutex_);
    const auto found = lanes_.find({device, peer.HostString()});
    return found == lanes_.end() ? 0 : found->second;
  }
  void LearnLanes(int device, const SocketAddress& peer, int lanes) {
    MutexLock lock(mutex_);
    lanes_[{device, peer.HostString()}] = lanes;
  }

 private:
  mutable Mutex mutex_;
  std::set<std::string> said_ TCPX_GUARDED_BY(mutex_);
  std::map<std::string, LeaveBy> ways_ TCPX_GUARDED_BY(mutex_);
  std::map<std::pair<int, std::string>, int> lanes_ TCPX_GUARDED_BY(mutex_);
};

// On the dialling side before connect, so that the SYN bears the class too. `notes` may be null.
void ConfigureLane(int fd, const PathProfile& profile, LaneNotes* notes);

}  // namespace tcpx
