// port_owners.h: which processes of this host have the ports of a range, for the message that says that none is free.
//
// Purpose: a range of ports is mostly used up by a run that has not ended yet, or by ranks that share it: the operator
//          wants their process ids.
// Threads: any. Lifetime: nothing is kept; it reads /proc, milliseconds on a busy host, so only where a listen failed.
// Errors:  none: what the kernel won't show (another user's process, another container's) is said to be unknown.
// Source:  proc(5): /proc/net/tcp, /proc/net/tcp6 and /proc/PID/fd.
#pragma once

#include <string>

#include "common/address.h"
#include "common/params.h"

namespace tcpx {

// "40000 by process 71 (python3), 40001 by a process that can't be seen": those that keep us from listening on
// `address`. Empty where none is known. `proc_root` is "/proc" outside tests.
std::string DescribePortOwners(const SocketAddress& address, const PortRange& range,
                               const std::string& proc_root = "/proc");

}  // namespace tcpx
