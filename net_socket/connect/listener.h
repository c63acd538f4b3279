// listener.h: one listening socket, and what it does when no descriptor is left for peers that wait in its backlog.
//
// Purpose: accepts in portions, one in each turn of the loop: other sockets of the reactor get theirs, and a backlog
//          that strangers fill is emptied, since a peer that finds it full comes again after a second. At the
//          descriptor limit a socket that has not said its hello makes room; where there is none, the listener pauses
//          instead of spinning. One that something else shut down (ss -K ends listening sockets too) is left alone:
//          epoll would report it for ever.
// Threads: the reactor; created anywhere.
// Lifetime: borrows runtime and hellos. Unwatch its descriptor before it goes.
// Errors:  the limit is a WARN, at most once a minute; a socket that was shut down is one, once.
#pragma once

#include <cstdint>
#include <utility>

#include "common/fd.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/connect/pending_hello.h"
#include "net_socket/engine/link.h"

namespace tcpx {

class Listener final : public Reactor::Handler {
 public:
  Listener(Runtime* runtime, PendingHellos* hellos, OwnedFd fd)
      : runtime_(runtime), hellos_(hellos), fd_(std::move(fd)) {}
  ~Listener() override;

  int fd() const { return fd_.get(); }
  void OnEvents(uint32_t events) override;

 private:
  void AcceptSome();
  void LimitReached(int err);
  void WasShutDown();
  void Pause();
  void StopResting();

  Runtime* const runtime_;
  PendingHellos* const hellos_;
  OwnedFd fd_;
  Tie tie_;
  bool goes_on_ = false;   // with the next turn
  int64_t warned_ns_ = 0;  // 0: not yet
  bool pausing_ = false;
  Reactor::TimerId pause_timer_;
};

}  // namespace tcpx
