// own_memory.h: what this process has in memory that can be written, as a core dump would show it.
//
// Threads: others may go on meanwhile; what they change is seen or not.
// Errors:  none; mappings of more than 1 GiB are left out.
#ifndef TCPX_TESTS_SUPPORT_OWN_MEMORY_H_
#define TCPX_TESTS_SUPPORT_OWN_MEMORY_H_

#include <cstddef>
#include <functional>

namespace tcpx {

// `look` is given a copy of each piece, which is wiped behind it. Pieces of a mapping that follow one another have
// `overlap` bytes in common.
void ForEachPieceOfMemory(size_t overlap, const std::function<void(const char* piece, size_t bytes)>& look);

}  // namespace tcpx

#endif  // TCPX_TESTS_SUPPORT_OWN_MEMORY_H_
