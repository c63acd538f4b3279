// stage_pool.h: read-ahead buffers that lanes borrow while they hold data (page_buffers.h).
#pragma once

#include <cstddef>

#include "common/page_buffers.h"

namespace tcpx {

// Measured: 128 KiB makes 16 and 64 KiB messages arrive with one call; 16 KiB is no better than reading the header
//           first, 256 KiB no better than 128 (docs/experiments.md).
inline constexpr size_t kStageBytes = 128 * 1024;

struct StagePool : PageBuffers {
  StagePool() : PageBuffers(kStageBytes) {}
};

}  // namespace tcpx
