// flag_lines.h: data with flags in it, as NCCL's LL and LL128 protocols lay it out, written and polled as a GPU would.
//
// Purpose: a receiver of these protocols looks at the flags inside the buffer, not at the request. Each message has a
//          flag of its own; a line that shows it must hold the message's data.
//
//   LL:    lines of 8 bytes: 4 data, 4 flag. LL128: lines of 128 bytes: 120 data, 8 flag.
// Threads: Fill and Poll may run while another thread moves the bytes: that race is the protocol. Loads are
//          atomic, 8 bytes each, the flag first.
// Units:   bytes, a multiple of the line's; buffers are aligned to 8.
// Errors:  none: Seen says it.
// Source:  NCCL 2.12 to 2.30, device code of both protocols.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcpx {

enum class LineKind : uint8_t { kLl, kLl128 };
const char* LineKindName(LineKind kind);
size_t LineBytes(LineKind kind);

// `flag` is not 0; its low half differs between messages that use the same memory.
void FillLines(LineKind kind, uint64_t flag, void* data, size_t bytes);

enum class Seen { kNotYet, kAll, kWrong };
// Looks at the lines from *line on; leaves there the first that does not show `flag`, or shows it and other data.
Seen PollLines(LineKind kind, uint64_t flag, const void* data, size_t bytes, size_t* line);

}  // namespace tcpx
