// command.h: what rank 0 tells rank 1 to do; both then do it at the same time.
//
// Purpose: only rank 0 knows the plan. Rank 1 obeys, so that with two machines one side needs no options but its
//          plugin.
// Threads: plain values.
// Units:   bytes, seconds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/net_bench/options.h"
#include "bench/net_bench/shared_page.h"
#include "common/payload/flag_lines.h"

namespace tcpx {
namespace bench {

// First on the control connection, both ways. Two builds that differ in layout do not understand each other.
struct Hello {
  uint64_t magic = 0x74637078626e6331;
  uint32_t command_bytes = 0;
  uint16_t has_plugin = 0;
  uint16_t has_vs = 0;
};

enum class CommandKind : uint32_t { kOpenLinks, kProbe, kSample, kCloseLinks, kIdle, kSetup, kFlags, kMixed, kQuit };

struct Command {
  CommandKind kind = CommandKind::kQuit;
  Mode mode = Mode::kLatency;
  Implementation implementation = Implementation::kPlugin;  // of a sample
  uint32_t implementations = 0;                             // of kOpenLinks: bits 1 << Implementation
  int32_t connections = 1;
  int32_t window = 8;
  int32_t seconds = 0;
  uint8_t one_isend_per_pass = 0;
  uint8_t check = 0;
  uint8_t probe_after = 0;
  uint8_t yield = 0;
  uint8_t optional_recv = 0;           // of kFlags: receives carry NCCL's hint
  LineKind line_kind = LineKind::kLl;  // of kFlags
  uint64_t bytes = 0;                  // of a message; of kOpenLinks the largest
  uint64_t ping_bytes = 0;             // of kMixed, whose stream has `bytes` and `messages`
  uint64_t messages = 0;
  uint64_t warmup = 0;
  uint64_t seed = 0;             // of kFlags: the first message's flag
  char raw_congestion[16] = {};  // TCP_CA_NAME_MAX
};

inline bool Has(const Command& command, Implementation implementation) {
  return (command.implementations >> static_cast<uint32_t>(implementation)) & 1;
}

}  // namespace bench
}  // namespace tcpx
