// memory_region.h: what regMr hands out.
//
// Purpose: staged copies need nothing of it; it names the memory whose use must end in deregMr.
//
// Threads: stands still from regMr on. Lifetime: until deregMr, or its comm's end.
// Units:   bytes.
#ifndef TCPX_NET_SOCKET_MESSAGE_MEMORY_REGION_H_
#define TCPX_NET_SOCKET_MESSAGE_MEMORY_REGION_H_

#include <cstddef>
#include <cstdint>

#include "nccl/plugin_api.h"

namespace tcpx {

class GpuPool;

class MemoryRegion {
 public:
  GpuPool* gpu = nullptr;  // null exactly when it is host memory
  char* data = nullptr;
  size_t bytes = 0;
  MemoryType type = MemoryType::kHost;
  uint64_t id = 0;  // no other region of the comm ever has it
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_MESSAGE_MEMORY_REGION_H_
