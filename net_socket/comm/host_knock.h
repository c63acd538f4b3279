// host_knock.h: whether a peer's host answers a new connect, while its sockets are not heard.
//
// Purpose: a firewall that drops flows lets a new one through; a host that is gone answers nothing. A port that refuses
//          is an answer of the host's kernel as well.
//
// Threads: one at a time.
// Errors:  what can't be asked has no answer; it is asked again at the next look.
#ifndef TCPX_NET_SOCKET_COMM_HOST_KNOCK_H_
#define TCPX_NET_SOCKET_COMM_HOST_KNOCK_H_

#include "common/address.h"
#include "common/fd.h"

namespace tcpx {

class HostKnock {
 public:
  // Asks where no question is under way, and never waits. Once there was an answer, it holds until Forget.
  bool Answers(const SocketAddress& from, const SocketAddress& to);
  void Forget();

 private:
  // True: an answer is to be waited for.
  bool Ask(SocketAddress from, const SocketAddress& to);
  // An answer is an end of the question, and so is an error of the way: errors are told once.
  void End(int err);

  OwnedFd fd_;  // valid exactly while the question is under way
  bool answered_ = false;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_HOST_KNOCK_H_
