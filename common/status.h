// status.h: turns an errno into a Status whose code says whose fault it was.
//
// Purpose: the one place that decides which errno is the network's, which a shortage here, and which anything else
//          (nccl/plugin_api.h says what each code becomes).
// Threads: any.
// Errors:  network and peer -> kUnavailable; descriptors and memory -> kResourceExhausted, with advice; the rest ->
//          kUnknown. Never OK: an errno of 0 is kUnknown too.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tcpx {

// "WHAT: Connection refused (111)", with advice appended where there is some.
absl::Status ErrnoStatus(int err, absl::string_view what);

// The errno that ErrnoStatus was given; 0: it was not made by it.
int StatusErrno(const absl::Status& status);

// "Connection refused (111)". Thread-safe, unlike strerror.
std::string ErrnoText(int err);

// True exactly when a call on a socket that ended so may be made again later: nothing is wrong.
bool IsTransientErrno(int err);

// True exactly when the kernel ends a socket with it because nobody has answered for the whole timeout.
bool IsSilentErrno(int err);

// True exactly when `err` tells of the peer or of the network between, not of this host's resources.
bool IsNetworkErrno(int err);

}  // namespace tcpx
