#include "tests/support/own_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace tcpx {

void ForEachPieceOfMemory(size_t overlap, const std::function<void(const char* piece, size_t bytes)>& look) {
  std::vector<char> block(size_t{1} << 20);
  FILE* const maps = fopen("/proc/self/maps", "r");
  FILE* const memory = fopen("/proc/self/mem", "r");
  unsigned long begin = 0;
  unsigned long end = 0;
  char rights[8];
  char rest[512];
  while (fscanf(maps, "%lx-%lx %7s %511[^\n]", &begin, &end, rights, rest) == 4) {
    if (rights[1] != 'w' || end - begin > (size_t{1} << 30)) continue;
    for (unsigned long at = begin; at < end; at += block.size() - overlap) {
      const ssize_t got = pread(fileno(memory), block.data(), std::min(block.size(), end - at), static_cast<off_t>(at));
      if (got > 0) look(block.data(), static_cast<size_t>(got));
      std::fill(block.begin(), block.end(), '\0');
    }
  }
  fclose(maps);
  fclose(memory);
}

}  // namespace tcpx
