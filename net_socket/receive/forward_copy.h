// forward_copy.h: a copy that stores in ascending address order, each byte once.
//
// Purpose: NCCL's LL and LL128 receivers poll flags inside the buffer while it is written (NCCL 2.12 to 2.30): data
//          must not appear after its flag. memcpy makes no promise (glibc stores the tail early), so copies into user
//          buffers are made here, 64 bytes at a time from low to high addresses.
// Order:   on x86-64 others see the bytes in that order. On aarch64 they see each aligned word of 8 bytes whole (LL),
//          and the last word of an aligned line of 128 bytes (LL128's flag) after all that is in front of it.
// Threads: any. Units: bytes. The ranges must not overlap.
#pragma once

#include <cstddef>

namespace tcpx {

void ForwardCopy(char* to, const char* from, size_t bytes);

}  // namespace tcpx
