// linger.h: the end of a socket that was shut down.
//
// Purpose: closing a socket with unread data resets it and destroys what the peer had not read yet (RFC 1122,
//          4.2.2.13). So a socket whose sending side was shut down is read to its end, and what comes is thrown away,
//          before it is closed. Where nobody may wait for that, the kernel delivers what is queued after the close,
//          unless the peer goes on speaking.
// Threads: Release and Hurry from any; the rest in the reactor.
// Lifetime: until the reactor has ended.
// Units:   nanoseconds.
// Errors:  none: a socket that can't be watched is closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "common/fd.h"
#include "net_socket/engine/reactor.h"

namespace tcpx {

class LingeringSockets {
 public:
  // Null: never.
  using Aborted = std::shared_ptr<const std::atomic<bool>>;

  explicit LingeringSockets(Reactor* reactor) : reactor_(reactor) {}

  // Closes `fd`: at once with `linger_ns` 0, else when the peer has closed too or after that time, or at a Hurry while
  // `aborted` is true. The reactor may be watching `fd`. A reactor that has ended closes it at once.
  void Release(OwnedFd fd, int64_t linger_ns, Aborted aborted);
  // Someone is about to wait for the end of the reactor.
  void Hurry();

 private:
  class Socket;

  Reactor* const reactor_;
  absl::flat_hash_set<Socket*> sockets_;  // in the reactor
};

}  // namespace tcpx
