// registered_buffers.h: which memory regions a lane has registered with its ring.
//
// Purpose: a send without a copy pins the pages it sends from and lets them go again: a tenth of what such a send costs
//          the CPU (docs/performance.md). Pages of a registered region stay pinned. Worth it only where zero-copy has
//          proved itself, so nothing is registered by regMr; a lane registers a region when it first sends from it.
//
// Threads: Find, Settle and ReleaseAll by the lane's thread; Forget by any.
// Lifetime: a region has an id that no other of its connection ever gets, so that memory which was deregistered, freed
//          and mapped anew is never taken for what lay there before.
// Units:   bytes.
// Errors:  none: what can't be registered (no room, RLIMIT_MEMLOCK, too large) is sent unregistered.
// Source:  io_uring_register_buffers_sparse(3), Linux 5.19; IORING_RECVSEND_FIXED_BUF of SEND_ZC, Linux 6.0.
#ifndef TCPX_NET_SOCKET_SEND_REGISTERED_BUFFERS_H_
#define TCPX_NET_SOCKET_SEND_REGISTERED_BUFFERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "net_socket/engine/engine.h"

namespace tcpx {

class RegisteredBuffers {
 public:
  // Pinning a GiB takes longer than other lanes of the thread can wait.
  static constexpr size_t kBytesMax = 64 << 20;

  struct Region {
    uint64_t id = 0;
    void* data = nullptr;
    size_t bytes = 0;
  };

  // The engine's buffer for `region`, registered if need be; kNoBuffer where that won't do.
  int Find(Engine* engine, const Region& region);
  // The region has been deregistered and nothing is sent from it any more. True: the lane must be kicked, and Settle.
  bool Forget(uint64_t id);
  // Releases what was forgotten.
  void Settle(Engine* engine);
  void ReleaseAll(Engine* engine);

 private:
  struct Entry {
    uint64_t id = 0;
    int buffer = kNoBuffer;
  };

  void Release(Engine* engine, size_t index);

  std::vector<Entry> entries_;  // of every region that Find was asked for
  std::atomic<bool> used_{false};
  std::atomic<bool> forgot_{false};
  std::mutex mutex_;
  std::vector<uint64_t> forgotten_;  // guarded by mutex_
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEND_REGISTERED_BUFFERS_H_
