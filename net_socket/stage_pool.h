// stage_pool.h: read-ahead buffers that lanes borrow while they hold data.
//
// Purpose: an idle connection owns no staging; busy ones driven by one thread share one warm buffer.
//
// Threads: any. Take and Give never block: a pool that is being touched by another thread is passed by.
// Units:   bytes; every buffer has kStageBytes.
// Errors:  none; Take allocates when the pool has none.
#ifndef TCPX_NET_SOCKET_STAGE_POOL_H_
#define TCPX_NET_SOCKET_STAGE_POOL_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace tcpx {

// Measured: 128 KiB makes 16 and 64 KiB messages arrive with one call; 16 KiB is no better than reading the header
// first, 256 KiB no better than 128 (docs/performance.md).
inline constexpr size_t kStageBytes = 128 * 1024;

class StagePool {
 public:
  std::unique_ptr<char[]> Take();
  void Give(std::unique_ptr<char[]> stage);

 private:
  static constexpr size_t kKeptMax = 16;

  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::vector<std::unique_ptr<char[]>> kept_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_STAGE_POOL_H_
