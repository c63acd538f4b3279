// random.h: unpredictable bytes, for tickets and connection ids.
//
// Threads: any. Blocks only while the kernel's pool is not yet initialised (early boot; getrandom(2)).
// Units:   bytes.
// Errors:  the local kernel's: kUnknown with the errno text.
#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace tcpx {

absl::Status FillRandom(void* data, size_t bytes);

}  // namespace tcpx
