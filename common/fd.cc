#include "common/fd.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace tcpx {
namespace {

// fs.nr_open's default (proc(5)). A larger number is owned and closed all the same, but stays open in a child.
constexpr size_t kTableBits = 1 << 20;
constexpr size_t kWordBits = 64;

// The one global here: zero-initialised, trivially destructible, 128 KiB of pages that are touched only when used.
std::atomic<uint64_t> table[kTableBits / kWordBits];

bool InTable(int fd) { return fd >= 0 && static_cast<size_t>(fd) < kTableBits; }
std::atomic<uint64_t>& WordOf(int fd) { return table[static_cast<size_t>(fd) / kWordBits]; }
uint64_t BitOf(int fd) { return uint64_t{1} << (static_cast<size_t>(fd) % kWordBits); }

void Enter(int fd) {
  if (InTable(fd)) WordOf(fd).fetch_or(BitOf(fd), std::memory_order_relaxed);
}

// True exactly when `fd` was there, or is too large for the table.
bool Leave(int fd) {
  if (!InTable(fd)) return true;
  return (WordOf(fd).fetch_and(~BitOf(fd), std::memory_order_relaxed) & BitOf(fd)) != 0;
}

}  // namespace

OwnedFd::OwnedFd(int fd) : fd_(fd < 0 ? -1 : fd) { Enter(get()); }

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this == &other) return *this;
  reset();
  fd_.store(other.fd_.exchange(-1), std::memory_order_release);
  return *this;
}

int OwnedFd::release() {
  const int fd = fd_.exchange(-1);
  if (fd >= 0) Leave(fd);
  return fd;
}

void OwnedFd::reset(int fd) {
  const int before = get();
  if (fd >= 0 && fd == before) return;
  // Out of the table first: the moment it is closed, another thread may get and enter the same number.
  if (before >= 0 && Leave(before)) close(before);
  Enter(fd < 0 ? -1 : fd);
  fd_.store(fd < 0 ? -1 : fd, std::memory_order_release);
}

void CloseAllOwnedFdsInChild() {
  for (size_t word = 0; word < kTableBits / kWordBits; ++word) {
    if (table[word].load(std::memory_order_relaxed) == 0) continue;
    uint64_t bits = table[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      close(static_cast<int>(word * kWordBits) + __builtin_ctzll(bits));
    }
  }
}

bool IsOwnedFd(int fd) { return InTable(fd) && (WordOf(fd).load(std::memory_order_relaxed) & BitOf(fd)) != 0; }

absl::Status RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return ErrnoStatus(errno, "getrlimit(RLIMIT_NOFILE)");
  if (limit.rlim_cur == limit.rlim_max) return absl::OkStatus();
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("raising the limit of open files from the soft limit ", soft,
                                         " to the hard limit ", limit.rlim_max));
}

long DescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  return limit.rlim_cur == RLIM_INFINITY ? INT64_MAX : static_cast<long>(limit.rlim_cur);
}

}  // namespace tcpx
