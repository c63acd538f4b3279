// thread.h: starts a thread, or says why the kernel gives none.
//
// Purpose: std::thread throws where the kernel refuses (RLIMIT_NPROC, pids.max of a container), through NCCL and into
//          the application's end. Every thread of ours starts here instead.
// Threads: any. The new thread blocks the application's signals, but for those that tell of a fault of itself.
// Errors:  kResourceExhausted, with advice, for EAGAIN (pthread_create(3)); the local kernel's otherwise.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace tcpx {

// `what` names it in an error: "the housekeeping thread".
absl::StatusOr<std::thread> StartThread(const char* what, std::function<void()> function);

}  // namespace tcpx
