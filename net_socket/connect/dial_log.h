// dial_log.h: what the log says of dials that fail or get nowhere, and who else hears of it.
//
// Purpose: NCCL dials a peer once for each channel, and all of them meet the same. One WARN for each peer and cause;
//          and a communicator in which one connect has failed fails as one that lost a connection (failure_group.h), so
//          that no rank waits for ever for one that has given up.
// Threads: the reactor.
// Lifetime: borrows the reactor.
// Errors:  none of its own.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "net_socket/comm/communicator.h"
#include "net_socket/engine/reactor.h"

namespace tcpx {

class DialLog {
 public:
  explicit DialLog(Reactor* reactor) : reactor_(reactor) {}

  // The line is out when this returns; the communicator's connections hear of it soon.
  void FailedInLoop(const Communicator& communicator, const std::string& why);
  // `subject`: of what nothing else is said for a while.
  void SlowInLoop(const Communicator& communicator, const std::string& subject, const std::string& what);

 private:
  bool IsNews(const std::string& subject);

  Reactor* const reactor_;
  absl::flat_hash_map<std::string, int64_t> said_ns_;  // by subject
};

}  // namespace tcpx
