// lost_threads.h: what the forked child of a process with threads says to the address sanitizer.
//
// What only the stack of a thread of its parent held would be a leak to it, in a process without that thread.
#pragma once

namespace tcpx {

// This process is such a child: at exit it isn't asked for leaks.
void ThreadsAreLost();

}  // namespace tcpx
