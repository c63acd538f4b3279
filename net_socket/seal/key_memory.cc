#include "net_socket/seal/key_memory.h"

#include <sodium/utils.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "common/dcheck.h"
#include "common/log.h"
#include "common/mutex.h"

namespace tcpx {
namespace {

constexpr size_t kSlots = 64;  // of a block: one bit each
constexpr uint64_t kAllTaken = ~uint64_t{0};

// What is taken is noted elsewhere: a forked child finds zeros.
struct Block {
  KeyPages pages{kSlots * kKeySlotBytes};
  uint64_t taken = 0;
  Block* next = nullptr;
};

std::atomic<bool> g_locked{true};
Mutex g_blocks_mutex;
Block* g_blocks TCPX_GUARDED_BY(g_blocks_mutex) = nullptr;  // owned; the last one goes with the last key

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

size_t WholePages(size_t bytes) { return (bytes + PageBytes() - 1) / PageBytes() * PageBytes(); }

// Said once for all keys: the limit may be reached long after the first key.
void Hide(void* at, size_t bytes) {
  if (mlock(at, bytes) != 0 && g_locked.exchange(false)) {
    TCPX_INFO("a secret or a key can't be locked in memory, and may go to swap: raise `ulimit -l`");
  }
  (void)madvise(at, bytes, MADV_DONTDUMP);
}

unsigned char* Map(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  Hide(at, bytes);
  (void)madvise(at, bytes, MADV_WIPEONFORK);
  return static_cast<unsigned char*>(at);
}

}  // namespace

KeyPages::KeyPages(size_t bytes) : bytes_(WholePages(bytes)), data_(Map(bytes_)) {}

KeyPages::~KeyPages() {
  sodium_memzero(data_, bytes_);
  (void)munmap(data_, bytes_);
}

unsigned char* TakeKeySlot() {
  MutexLock lock(g_blocks_mutex);
  Block** place = &g_blocks;
  while (*place != nullptr && (*place)->taken == kAllTaken) place = &(*place)->next;
  if (*place == nullptr) *place = new Block;
  Block* const block = *place;
  const int slot = __builtin_ctzll(~block->taken);
  block->taken |= uint64_t{1} << slot;
  return block->pages.data() + static_cast<size_t>(slot) * kKeySlotBytes;
}

void FreeKeySlot(unsigned char* slot) {
  sodium_memzero(slot, kKeySlotBytes);
  MutexLock lock(g_blocks_mutex);
  const auto has_it = [slot](const Block& block) {
    return slot >= block.pages.data() && slot < block.pages.data() + kSlots * kKeySlotBytes;
  };
  Block** place = &g_blocks;
  while (*place != nullptr && !has_it(**place)) place = &(*place)->next;
  TCPX_DCHECK(*place != nullptr);
  Block* const block = *place;
  block->taken &= ~(uint64_t{1} << (static_cast<size_t>(slot - block->pages.data()) / kKeySlotBytes));
  if (block->taken != 0) return;
  *place = block->next;
  delete block;
}

bool KeysAreLocked() { return g_locked.load(std::memory_order_relaxed); }

void HideKeyMemory(const void* at, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(at) / PageBytes() * PageBytes();
  Hide(reinterpret_cast<void*>(begin), WholePages(reinterpret_cast<uintptr_t>(at) + bytes - begin));
}

}  // namespace tcpx
