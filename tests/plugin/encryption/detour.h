// detour.h: redirects what this process dials, as the owner of a router may.
//
// Purpose: every lane and every health socket of the plugin goes to somebody in between, also those whose addresses the
//          handshake proves. connect(2) of this program is found before libc's: link with -rdynamic.
// Threads: any. Errors: none.
#pragma once

#include "common/address.h"

namespace tcpx {

// From here on dials to port `from` of any address go to port `to` of it; 0 and 0: nothing does.
void Detour(int from, int to);
// Dials past that.
int ConnectStraight(int fd, const SocketAddress& to);

}  // namespace tcpx
