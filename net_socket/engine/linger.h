// linger.h: the last road of a socket.
//
// Purpose: closing a socket with unread data resets it and destroys what the peer had not read yet (RFC 1122,
//          4.2.2.13). So a socket whose sending side was shut down is read to its end, and what comes is thrown away,
//          before it is closed.
//
// Threads: ReleaseSocket from any; the rest in the reactor.
// Units:   nanoseconds.
// Errors:  none: a socket that can't be watched is closed.
#ifndef TCPX_NET_SOCKET_ENGINE_LINGER_H_
#define TCPX_NET_SOCKET_ENGINE_LINGER_H_

#include <cstdint>

#include "common/fd.h"
#include "net_socket/engine/reactor.h"

namespace tcpx {

// Closes `fd`: at once with `linger_ns` 0, else when the peer has closed too or after that time. The reactor may be
// watching `fd`. A reactor that has ended closes it at once.
void ReleaseSocket(Reactor* reactor, OwnedFd fd, int64_t linger_ns);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_ENGINE_LINGER_H_
