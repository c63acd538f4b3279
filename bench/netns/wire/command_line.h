// command_line.h: the command line of wire, and the lines that change a running one.
//
// Threads: any; pure.
// Units:   as settings.h.
// Errors:  kInvalidArgument with one sentence for the user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/netns/wire/packet.h"
#include "bench/netns/wire/settings.h"

namespace tcpx {
namespace wire {

struct End {
  std::string netns;
  std::string device;
  std::vector<Address> addresses;
};

struct Options {
  bool help = false;
  std::vector<End> ends;
  Settings settings;
  std::string control;  // path of the UNIX socket; empty: none
  uint64_t seed = 1;
  int64_t spin_ns = 20000;
};

// Later options override earlier ones, so a profile comes first.
absl::StatusOr<Options> ParseCommandLine(const std::vector<std::string>& arguments);

// "set KEY VALUE", "set path N KEY VALUE", "cut on", "cut off".
absl::Status ApplyLine(absl::string_view line, Settings* settings);

std::string UsageText();

}  // namespace wire
}  // namespace tcpx
