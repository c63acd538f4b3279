// key_memory.h: where secrets and keys are kept.
//
// Purpose: nobody finds them on a disk or in another process: their pages are locked (mlock), left out of core dumps
//          (MADV_DONTDUMP), and zeros in a forked child (MADV_WIPEONFORK). What is kept is wiped when it goes.
// Threads: any.
// Lifetime: the pages go with the last key.
// Units:   bytes.
// Errors:  none: where the limit forbids to lock (RLIMIT_MEMLOCK), or an old kernel does not know the advice, the key
//          is kept without. KeysAreLocked says so, and the log, once.
// Source:  mlock(2), madvise(2): MADV_WIPEONFORK, Linux 4.14.
#pragma once

#include <cstddef>

namespace tcpx {

// Pages of their own, zeros at first.
class KeyPages {
 public:
  explicit KeyPages(size_t bytes);
  ~KeyPages();
  KeyPages(const KeyPages&) = delete;
  KeyPages& operator=(const KeyPages&) = delete;

  unsigned char* data() const { return data_; }

 private:
  const size_t bytes_;  // whole pages
  unsigned char* const data_;
};

// A place of kKeySlotBytes, zeros at first. Free wipes it.
inline constexpr size_t kKeySlotBytes = 64;
unsigned char* TakeKeySlot();
void FreeKeySlot(unsigned char* slot);

// False: some could not be.
bool KeysAreLocked();

// Locks the pages of memory that a library keeps a key in, and leaves them out of core dumps.
void HideKeyMemory(const void* at, size_t bytes);

}  // namespace tcpx
