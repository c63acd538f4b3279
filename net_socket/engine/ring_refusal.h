// ring_refusal.h: why the kernel gave no ring, and what an operator can do about it.
//
// Purpose: a ring's memory counts against a limit, and goes on counting for a while after the ring's end: a
//          communicator that follows another waits for it.
// Threads: any.
// Units:   nanoseconds.
// Errors:  none of its own.
// Source:  io_uring_setup(2): EPERM by sysctl or seccomp, ENOSYS, ENOMEM. A ring counts as locked memory
//          (RLIMIT_MEMLOCK, of all processes of the user, without CAP_IPC_LOCK) up to Linux 5.11 and from 6.14 on
//          (io_create_region); between them as memory of the container. Measured on 6.18: 227 of our rings in 8 MiB.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace tcpx {

// More than the kernel needs to give the memory of ended rings back on a busy host.
inline constexpr int64_t kRingPatienceNs = 2'000'000'000;

// For errno `err` of io_uring_setup, or of io_uring_enter's first call.
absl::Status RingRefusal(int err);
// Calls `open` until it returns something else than -ENOMEM, or for about `patience_ns`; returns the last result. Does
// not wait where the limit holds no ring at all, nor after one wait without success, until a ring could be made again:
// else each of many progress threads would wait, one after the other.
int OpenPatiently(const std::function<int()>& open, int64_t patience_ns = kRingPatienceNs);

}  // namespace tcpx
