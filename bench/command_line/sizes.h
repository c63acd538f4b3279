// sizes.h: message sizes as people write them.
//
// Purpose: "64K", "128M" and sweeps between two sizes, as nccl-tests takes them.
// Threads: any; pure.
// Units:   bytes; K, M and G are powers of 1024, as in nccl-tests.
// Errors:  kInvalidArgument with the text that was not understood.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {
namespace bench {

// "0", "8", "4K", "128M", "1G"; a lower case suffix and a trailing "B" or "iB" are fine too.
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// The shortest of these forms that loses nothing: 65536 -> "64K", 614400 -> "600K", 1000 -> "1000".
std::string FormatSize(uint64_t bytes);

// From `begin` to `end` (included when it is met), each `factor` times the one before; a `begin` of 0 is followed by
// 1. `factor` is at least 2.
std::vector<uint64_t> GeometricSweep(uint64_t begin, uint64_t end, uint64_t factor);

}  // namespace bench
}  // namespace tcpx
