// socket_swap.h: another socket in the place of one that has died.
//
// Purpose: a lane keeps its descriptor's number for life, so that nobody who knows it has to hear of another socket.
//          What the peer's kernel had acknowledged may be relied upon only if the old socket is let go in this order:
//          FreezeSocket, ReplaceSocket, and only then a word to the peer of how much has come (measured in
//          docs/experiments.md).
// Threads: any; nobody else reads the socket meanwhile.
// Units:   bytes.
// Errors:  ReplaceSocket: the local kernel's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

// Ends both directions and appends all that has come to `rest`.
void FreezeSocket(int fd, std::string* rest);

// From here on `fd` names the socket that `by` names; the one before is reset.
absl::Status ReplaceSocket(int fd, int by);
// The same, of a socket that has nothing left to say: it ends in order.
absl::Status CloseSocket(int fd, int by);

// A socket for a lane that goes on with it. `done` keeps `fd` open until it is destroyed.
struct SocketOffer {
  int fd = -1;
  // A socket of no use in the place of one that is closed: the lane keeps still until the next offer.
  bool closes = false;
  // A sender's: bytes of its stream that the peer has taken. A receiver's: those of its own records, the low 32 bits.
  uint64_t position = 0;
  // What seals it; null: it is not encrypted.
  std::shared_ptr<Seals> seals;
  // It has taken its place. `taken`: bytes of the stream that a receiver has taken; a sender says 1 if it sends some
  // of them again, else 0. In the reactor.
  std::function<void(uint64_t taken)> done;
};

// Where a lane finds its next socket.
// Threads: Put from any, Take by the lane's thread.
class NextSocket {
 public:
  // In place of one that was not taken.
  void Put(SocketOffer offer);
  bool waiting() const { return waiting_.load(std::memory_order_acquire); }
  SocketOffer Take();

 private:
  std::atomic<bool> waiting_{false};
  Mutex mutex_;
  SocketOffer offer_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx
