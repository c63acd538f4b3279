// stage_pool.h: read-ahead buffers that lanes borrow while they hold data.
//
// Purpose: an idle connection owns no staging; busy ones driven by one thread share one warm buffer.
//
// Threads: any. Take and Give never block: a pool that is being touched by another thread is passed by.
// Units:   bytes; every buffer has kStageBytes.
// Errors:  none; Take allocates when the pool has none.
#ifndef TCPX_NET_SOCKET_RECEIVE_STAGE_POOL_H_
#define TCPX_NET_SOCKET_RECEIVE_STAGE_POOL_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace tcpx {

// Measured: 128 KiB makes 16 and 64 KiB messages arrive with one call; 16 KiB is no better than reading the header
//           first, 256 KiB no better than 128 (docs/experiments.md).
inline constexpr size_t kStageBytes = 128 * 1024;

// Where the kernel copies to matters: a destination that is not on a cache line's boundary made a 64 KiB read take 26
// us instead of 8 on an AMD EPYC (docs/experiments.md).
inline constexpr size_t kStageAlignment = 4096;

struct StageDeleter {
  void operator()(char* stage) const { ::operator delete[](stage, std::align_val_t{kStageAlignment}); }
};
using Stage = std::unique_ptr<char[], StageDeleter>;

class StagePool {
 public:
  Stage Take();
  void Give(Stage stage);

 private:
  static constexpr size_t kKeptMax = 16;

  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::vector<Stage> kept_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_RECEIVE_STAGE_POOL_H_
