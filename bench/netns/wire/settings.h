// settings.h: what a network does to packets, and the words for it.
//
// Purpose: the command line (--delay 50us) and a line to a running relay (set delay 50us) use the same words.
// Threads: any; pure values.
// Units:   nanoseconds, bits per second, bytes, shares from 0 to 1, lengths in segments. As text: 50us, 20ms, 1s; 2G,
//          200M, 64K (powers of 1000 for rates, of 1024 for bytes); 0.1%.
// Errors:  kInvalidArgument with one sentence for the user; the settings are then as they were.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {
namespace wire {

inline constexpr int kPathsMax = 1024;

// One path towards one end. Each direction and each end has its own queues.
struct PathSettings {
  int64_t delay_ns = 0;   // one way
  int64_t jitter_ns = 0;  // the delay varies by up to this much, evenly; packets of a path keep their order
  uint64_t rate = 0;      // 0: none
  uint64_t queue = 0;     // in front of the rate; 0: what is under way in a round trip, at least 256 KiB
  double loss = 0;        // of segments
  double loss_run = 1;    // average length of a run of losses
  double reorder = 0;     // share of segments that others overtake
  int64_t reorder_by_ns = 1000000;
  bool cut = false;  // nothing passes, and what is under way is lost
};

struct Settings {
  std::vector<PathSettings> paths = std::vector<PathSettings>(1);
  uint64_t flow_rate = 0;  // of each flow, before its path; 0: none
  uint64_t flow_queue = 0;
  // A GSO frame is cut in pieces that take a path this long at most: its last byte's delay is true anyhow, this is what
  // other flows wait for at once.
  int64_t piece_ns = 200000;
};

absl::StatusOr<int64_t> ParseDuration(absl::string_view text);
absl::StatusOr<uint64_t> ParseRate(absl::string_view text);
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);
absl::StatusOr<double> ParseShare(absl::string_view text);

// Sets `key` of every path, or of the whole. "paths" keeps what is set of those that stay; new ones are as the first.
absl::Status SetEverywhere(absl::string_view key, absl::string_view value, Settings* settings);
absl::Status SetOfPath(int path, absl::string_view key, absl::string_view value, Settings* settings);
// True exactly when SetEverywhere knows the key.
bool IsKey(absl::string_view key);

// In bytes, with the default worked out.
uint64_t QueueOf(const PathSettings& path);
uint64_t FlowQueueOf(const Settings& settings, const PathSettings& path);

// A line for each setting, for --help.
const char* SettingsHelp();

}  // namespace wire
}  // namespace tcpx
