// nccl_log.h: what NCCL's log says about the network it uses.
//
// Purpose: the proof that a result came over the transport that was asked for: NCCL falls back to others without an
// error.
// Threads: any; pure.
// Units:   bytes.
// Errors:  JudgeTransport: kFailedPrecondition with what the log says instead.
// Source:  message texts of libnccl 2.28.9: "Using network %s", "Channel ... [send] via NET/%s/%d"; those of the
// plugin's
//          closing line: "sent %d messages of %d bytes, received %d of %d".
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tcpx {
namespace nccl_bench {

struct TransportLog {
  std::set<std::string> networks;      // of "Using network"
  std::set<std::string> channel_nets;  // of the channels' "via NET/..."
  int net_channels = 0;                // lines of channels over a network
  int other_channels = 0;              // lines of channels over P2P, SHM and so on
  int byte_lines = 0;                  // closing lines of the plugin; 0: this build of it writes none
  uint64_t bytes = 0;                  // what those say was sent and received
};
TransportLog ParseNcclLog(absl::string_view text);

// OK exactly when NCCL used `net` for every channel, had at least one if `needs_channels`, and no closing line says
// that nothing moved.
absl::Status JudgeTransport(const TransportLog& log, const std::string& net, bool needs_channels);

// "tcpx: 8 channels, 4194304 bytes".
std::string DescribeTransport(const TransportLog& log, const std::string& net);

}  // namespace nccl_bench
}  // namespace tcpx
