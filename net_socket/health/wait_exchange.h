// wait_exchange.h: messages on a health socket that say who its ends are, and what they wait for.
//
// Purpose: each process says its name when the socket comes up, the dialler first. A question of a connection that is
//          not there (yet, or any more) is answered here: the process lives, and nothing of that connection is posted.
// Threads: any.
// Lifetime: borrows the socket, which outlives it. Errors: none.
#pragma once

#include <string>

#include "common/mutex.h"
#include "net_socket/health/health_socket.h"
#include "net_socket/message/health_records.h"

namespace tcpx {

class WaitExchange {
 public:
  WaitExchange(HealthSocket* socket, bool dialled) : socket_(socket), dialled_(dialled) {}

  // A new socket: the dialling process says who it is.
  void Begin();
  // What no connection here has heard.
  void Hear(const HealthNotice& notice);
  // The peer's process, as it calls itself; empty: it is of a build that neither says so nor answers.
  std::string peer_name() const {
    MutexLock lock(mutex_);
    return peer_name_;
  }
  // What tells it from all other processes, as it first said: its number, or its name where it is of a build that says
  // no number. Empty: it has said nothing yet.
  std::string process() const {
    MutexLock lock(mutex_);
    return process_;
  }

 private:
  // Once a socket, however often the peer introduces itself.
  void Introduce() TCPX_REQUIRES(mutex_);

  HealthSocket* const socket_;
  const bool dialled_;
  mutable Mutex mutex_;
  std::string peer_name_ TCPX_GUARDED_BY(mutex_);
  std::string process_ TCPX_GUARDED_BY(mutex_);
  bool introduced_ TCPX_GUARDED_BY(mutex_) = false;
};

}  // namespace tcpx
