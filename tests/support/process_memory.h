// process_memory.h: what a process has in memory that can be written, as a core dump would show it.
//
// Threads: others may go on meanwhile; what they change is seen or not.
// Errors:  mappings of more than 1 GiB are left out.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace tcpx {

struct MemoryPiece {
  const char* data = nullptr;  // a copy, wiped after the look
  size_t bytes = 0;
  unsigned long address = 0;
  std::string mapping;  // as /proc/PID/maps describes it
};

// Pieces of a mapping that follow one another have `overlap` bytes in common. `process`: a PID, or "self". False: its
// memory can't be read.
bool ForEachPieceOfMemory(size_t overlap, const std::function<void(const MemoryPiece&)>& look,
                          const std::string& process = "self");

}  // namespace tcpx
