// stall_group.h: what the connections of one communicator wait for here, and what they come to together.
//
// Purpose: each end of a connection puts its latest look here; the root that follows is what this rank tells its
//          neighbours, so that a cause goes round a ring, and what its own line in the log names.
//
// Threads: the reactor; the pure RootOf any.
// Lifetime: its communicator's; members leave before their health socket's hub goes.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  none of its own.
#ifndef TCPX_NET_SOCKET_HEALTH_STALL_GROUP_H_
#define TCPX_NET_SOCKET_HEALTH_STALL_GROUP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net_socket/health/verdict.h"
#include "net_socket/health/wait_news.h"
#include "net_socket/message/health_records.h"

namespace tcpx {

class HealthPeer;

// One end of a connection, as of its latest look.
struct StallMember {
  std::shared_ptr<HealthPeer> health;  // may be null
  ConnectionId id{};
  std::string there;  // the peer's name
  bool sends = false;
  uint64_t messages_done = 0;
  uint32_t posted = 0;
  uint64_t sequence = 0;
  int64_t stalled_since_ns = 0;  // 0: it moves, or has nothing to do
  Verdict verdict;
  WaitRoot peer_root;  // what the peer names
};

// What a rank waits for whose connections are `members`. `self` and `here`: its number and name.
WaitRoot RootOf(const std::vector<const StallMember*>& members, uint64_t self, const std::string& here);

class StallGroup {
 public:
  // Never used twice: a connection that leaves late removes only its own entry.
  using Key = uint64_t;
  // From any thread.
  static Key NewKey();

  StallGroup();
  uint64_t self() const { return self_; }

  // Each end calls this at each look. While the end has no stalled request, it may instead write its progress straight
  // to the entry that is returned, until it leaves.
  StallMember* PutInLoop(Key key, StallMember member, int64_t now_ns);
  // What CpuShortage says of this process.
  void SetNoCpuInLoop(int percent) { no_cpu_percent_ = static_cast<uint8_t>(percent); }
  void LeaveInLoop(Key key);
  // The peer of this end wants to know; it hears of each change while it asks.
  void AskedInLoop(Key key, int64_t now_ns);
  // Asks the peer of this end, and tells it what is known here. False: it can't be asked now.
  bool AskInLoop(Key key, int64_t now_ns);
  const WaitRoot& root_in_loop() const { return root_; }

 private:
  struct Place {
    StallMember member;
    int64_t asked_ns = 0;  // 0: nobody has asked
  };

  void RefreshSome(int64_t now_ns);
  void Refresh(int64_t now_ns);
  bool Tell(const Place& place, bool asks, int64_t now_ns);

  const uint64_t self_;
  std::map<Key, Place> places_;
  bool stale_ = false;  // the rest is older than places_
  bool news_ = false;   // and may have another root
  int64_t refreshed_ns_ = 0;
  WaitRoot root_;
  int64_t since_ns_ = 0;  // since when the oldest stall lasts; 0: none
  uint8_t no_cpu_percent_ = 0;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_HEALTH_STALL_GROUP_H_
