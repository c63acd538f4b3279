#include "net_socket/engine/socket_swap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "common/socket.h"
#include "common/status.h"
#include "net_socket/engine/tuning.h"

namespace tcpx {

void FreezeSocket(int fd, std::string* rest) {
  shutdown(fd, SHUT_RDWR);
  const std::unique_ptr<char[]> buffer(new char[tuning::kFrozenReadBytes]);
  // An interrupted read, or a kernel that is short of memory, is no end; but no loop is without one.
  for (int empty = 0; empty < tuning::kEmptyReadsMax;) {
    const ssize_t got = recv(fd, buffer.get(), tuning::kFrozenReadBytes, MSG_DONTWAIT);
    if (got > 0) {
      rest->append(buffer.get(), static_cast<size_t>(got));
      continue;
    }
    if (UnreadBytes(fd) == 0) break;
    ++empty;
  }
  (void)SetResetOnClose(fd);
}

absl::Status ReplaceSocket(int fd, int by) {
  (void)SetResetOnClose(fd);
  return CloseSocket(fd, by);
}

// A bare system call: the thread sanitizer takes dup3() for a race with threads that use the number meanwhile, as they
// may.
absl::Status CloseSocket(int fd, int by) {
  if (syscall(SYS_dup3, by, fd, O_CLOEXEC) == fd) return absl::OkStatus();
  return ErrnoStatus(errno, "dup3 of a lane's next socket");
}

void NextSocket::Put(SocketOffer offer) {
  SocketOffer before;  // Destroyed without the lock.
  MutexLock lock(mutex_);
  before = std::exchange(offer_, std::move(offer));
  waiting_.store(true, std::memory_order_release);
}

SocketOffer NextSocket::Take() {
  MutexLock lock(mutex_);
  waiting_.store(false, std::memory_order_relaxed);
  return std::exchange(offer_, SocketOffer());
}

}  // namespace tcpx
