#include "tests/support/process_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

namespace tcpx {

bool ForEachPieceOfMemory(size_t overlap, const std::function<void(const MemoryPiece&)>& look,
                          const std::string& process) {
  std::vector<char> block(size_t{1} << 20);
  const std::string folder = "/proc/" + process;
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(fopen((folder + "/maps").c_str(), "r"), &fclose);
  const std::unique_ptr<FILE, int (*)(FILE*)> memory(fopen((folder + "/mem").c_str(), "r"), &fclose);
  if (maps == nullptr || memory == nullptr) return false;
  unsigned long begin = 0;
  unsigned long end = 0;
  char rights[8];
  char rest[512];
  while (fscanf(maps.get(), "%lx-%lx %7s %511[^\n]", &begin, &end, rights, rest) == 4) {
    if (rights[1] != 'w' || end - begin > (size_t{1} << 30)) continue;
    for (unsigned long at = begin; at < end; at += block.size() - overlap) {
      const ssize_t got =
          pread(fileno(memory.get()), block.data(), std::min(block.size(), end - at), static_cast<off_t>(at));
      if (got > 0) look({block.data(), static_cast<size_t>(got), at, rest});
      std::fill(block.begin(), block.end(), '\0');
    }
  }
  return true;
}

}  // namespace tcpx
