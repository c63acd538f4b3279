// fd.h: an owning file descriptor, and the table of all of them.
//
// Purpose: every descriptor this library holds is closed once, and a child after fork can close its copies of all of
//          them (a data loader must not keep a dead rank's sockets open).
// Threads: an OwnedFd belongs to one thread at a time, but for get and valid. The table is lock-free.
// Units:   descriptor numbers.
// Errors:  closing never fails for the caller: Linux frees the number whatever close(2) returns (close(2), "Dealing
//          with error returns from close()").
#pragma once

#include <atomic>

#include "absl/status/status.h"

namespace tcpx {

class OwnedFd {
 public:
  OwnedFd() = default;
  // Takes `fd`; a negative number owns nothing.
  explicit OwnedFd(int fd);
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.fd_.exchange(-1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  ~OwnedFd() { reset(); }

  // From any thread, also while another gives it what it owns.
  int get() const { return fd_.load(std::memory_order_acquire); }
  bool valid() const { return get() >= 0; }
  explicit operator bool() const { return valid(); }

  // Gives the descriptor up without closing it; it also leaves the table.
  [[nodiscard]] int release();
  // Closes what is owned, if anything, and owns `fd`.
  void reset(int fd = -1);

 private:
  std::atomic<int> fd_{-1};
};

// Closes every descriptor owned at the moment of the fork. For the child handler of pthread_atfork: async-signal-safe,
// no lock, no allocation. OwnedFd objects of the child still name the closed numbers and must not be used again; a
// destructor that does run closes nothing, because the numbers have left the table.
void CloseAllOwnedFdsInChild();

// True exactly when `fd` is owned by some OwnedFd of this process.
bool IsOwnedFd(int fd);

// Raises the soft limit of open descriptors to the hard one; a limit that is there already is OK.
absl::Status RaiseDescriptorLimit();

// The soft limit in force, for messages; -1 if it can't be read.
long DescriptorLimit();

}  // namespace tcpx
