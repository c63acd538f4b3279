// sandbox.h: a process that may not have everything, as in a pod.
//
// Threads: DenyIoUring and DenyLinkNews before any other thread starts; they hold for those that come.
// Errors:  a machine that takes no filter ends the process as a skip.
// Source:  seccomp(2), capabilities(7).
#pragma once

namespace tcpx {

// For this process and its threads, for good: io_uring's system calls end with errno `err`.
void DenyIoUring(int err);

// The same for news of interfaces: asking for them, as getifaddrs(3) does, is allowed.
void DenyLinkNews();

// Without CAP_IPC_LOCK, which lifts RLIMIT_MEMLOCK: as an ordinary user.
void DropIpcLock();

}  // namespace tcpx
