// gdr.h: GDRCopy, where it is installed: memory of the GPU that the host writes by itself.
//
// Threads: one. Lifetime: the mapping stays until the process ends.
// Errors:  kNotFound in words where there is none.
// Source:  gdrapi.h of GDRCopy 2.4: the functions' types.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace tcpx {
namespace gpu_probe {

// The page of `at`, which is GPU memory at a multiple of 64 KiB.
absl::StatusOr<volatile uint64_t*> MapByGdr(uint64_t at);

}  // namespace gpu_probe
}  // namespace tcpx
