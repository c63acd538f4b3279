// stall_group.h: what the connections of one communicator wait for on this rank, and the root of all these waits.
//
// Purpose: each connection stores its latest look here. From all of them follows the root (verdict.h). This rank
//          sends it to its neighbours, so that a cause travels round a ring, and names it in its own log line.
// Threads: the reactor; RootOf, which is pure, and NewKey: any.
// Lifetime: that of its communicator; members leave before the hub of their health socket is destroyed.
// Units:   nanoseconds of MonotonicNanos. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net_socket/health/verdict.h"
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
  int64_t stalled_since_ns = 0;  // 0: not stalled: it makes progress, or has nothing to do
  Verdict verdict;
  WaitRoot peer_root;  // the root that the peer reports
};

// The root for a rank with the connections `members`. `self` and `here` are the rank's number and name.
WaitRoot RootOf(const std::vector<const StallMember*>& members, uint64_t self, const std::string& here);

class StallGroup {
 public:
  // A key is never reused: a connection that leaves late removes only its own entry.
  using Key = uint64_t;
  // From any thread.
  static Key NewKey() {
    static std::atomic<Key> latest{0};
    return latest.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  StallGroup();
  uint64_t self() const { return self_; }

  // Each connection calls this at each look. While it has no stalled request, it may instead write its progress
  // directly to the returned entry, until it leaves.
  StallMember* PutInLoop(Key key, StallMember member, int64_t now_ns);
  // The result of CpuShortage for this process.
  void SetNoCpuInLoop(int percent) { no_cpu_percent_ = static_cast<uint8_t>(percent); }
  void LeaveInLoop(Key key);
  // The peer of this connection asks for the root: sends it now, and each change while the peer keeps asking.
  void AskedInLoop(Key key, int64_t now_ns);
  // Asks the peer of this connection for its root, and sends ours. False: the peer can't be asked now.
  bool AskInLoop(Key key, int64_t now_ns) {
    const auto found = places_.find(key);
    return found != places_.end() && Send(found->second, true, now_ns);
  }
  const WaitRoot& root_in_loop() const { return root_; }

 private:
  struct Place {
    StallMember member;
    int64_t asked_ns = 0;  // 0: nobody has asked
  };

  // At times.
  void Refresh(int64_t now_ns);
  bool Send(const Place& place, bool asks, int64_t now_ns);

  const uint64_t self_;
  std::map<Key, Place> places_;
  bool stale_ = false;  // a stalled entry has changed since the latest Refresh
  bool news_ = false;   // and the change may change the root
  int64_t refreshed_ns_ = 0;
  WaitRoot root_;
  int64_t since_ns_ = 0;  // when the oldest stall began; 0: none
  uint8_t no_cpu_percent_ = 0;
};

}  // namespace tcpx
