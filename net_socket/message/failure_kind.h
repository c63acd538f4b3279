// failure_kind.h: what kind of failure a status tells of: a value that travels with it, whatever its text says.
//
// Threads: any. Errors: all statuses made here are kUnavailable.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tcpx {

enum class FailureKind : uint8_t {
  kBareEnd,   // a socket's error or end, without a word of why
  kGarbage,   // what came was not of this protocol
  kForged,    // what came was not the peer's
  kReported,  // the peer, or another connection, said so: the text has the verdict of the rank that found it
  kSilence,   // nobody has answered for the whole timeout
  kLarge,     // no socket brings what is large any further
  kResets,    // each socket is reset
};

absl::Status FailureOf(FailureKind kind, absl::string_view text);
// kBareEnd of every status that was not made here.
FailureKind KindOf(const absl::Status& status);

// The peer sent something senseless.
absl::Status GarbageError(absl::string_view wrong);
// An error record came. `cause`: its text; empty: it has none.
absl::Status PeerError(absl::string_view cause);

}  // namespace tcpx
