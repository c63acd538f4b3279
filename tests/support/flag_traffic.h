// flag_traffic.h: LL and LL128 messages over a connection whose receiver is a GPU: a second thread polls the flags
// inside the receive buffers, and lets the next receive in as soon as it has seen a whole message, whatever `test`
// says.
//
// Threads: RunFlagTraffic from one; it starts the other and joins it.
// Errors:  text: what went wrong, first of all a line that showed its flag before its data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "nccl/client/net_client.h"

namespace tcpx {

inline constexpr size_t kFlagSlots = 8;           // NCCL_STEPS
inline constexpr size_t kFlagSlotBytes = 614400;  // a step of LL128

struct FlagTraffic {
  uint64_t seed = 0;
  size_t messages = 0;  // half LL, half LL128, short and long mixed
  // The receive buffers as the second thread sees them, zero.
  std::array<const void*, kFlagSlots> views{};
  // isend of `bytes`, irecv into slot `slot`, test; as the plugin's own.
  std::function<ncclResult_t(void* data, size_t bytes, void** request)> send;
  std::function<ncclResult_t(size_t slot, void** request)> receive;
  std::function<ncclResult_t(void* request, int* done)> test;
};

// Empty exactly when all went well.
std::string RunFlagTraffic(const FlagTraffic& traffic);

}  // namespace tcpx
