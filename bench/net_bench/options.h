// options.h: the command line of net_bench.
//
// Threads: none; pure.
// Units:   sizes are bytes, times say theirs.
// Errors:  ParseOptions: kInvalidArgument with one sentence for the user; the caller exits with 2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tcpx {
namespace bench {

enum class Mode : uint32_t {
  kLatency,
  kBandwidth,
  kBidirectional,
  kRate,          // bandwidth of small messages, as messages per second
  kMany,          // one driver, more and more connections
  kIdle,          // what connections cost that do nothing
  kSetup,         // what it costs to set connections up
  kAllreduce,     // ring all-reduce of floats
  kMixed,         // a ping-pong next to a stream of large messages
  kOptionalRecv,  // flags in the data, polled by a second thread, with NCCL's hint and without
};
const char* ModeName(Mode mode);

// Which samples make the main table; kAny does not look at the phase at all.
enum class PhaseChoice { kNear, kFar, kAny };

enum class Role { kLocal, kListen, kConnect };

// Where --connect dials when no port is given, and --listen listens. From the unassigned part of IANA's user ports.
inline constexpr int kDefaultPort = 23100;

struct Options {
  const char* program = "net_bench";
  bool help = false;
  bool version = false;
  std::string plugin;   // empty: raw only
  std::string vs;       // a second plugin to compare it with; empty: none
  int api_version = 0;  // 0: the newest exported
  int device = 0;
  int traffic_class = -1;        // of the communicator; -1: none
  std::vector<Mode> modes;       // never empty after parsing
  std::vector<uint64_t> sizes;   // empty: the mode's own
  int iterations = 0;            // 0: chosen for the sample time
  int warmup = -1;               // -1: a tenth of the iterations
  int window = 8;                // requests in flight per connection: NCCL_STEPS
  std::vector<int> connections;  // empty: the mode's own
  bool one_isend_per_pass = false;
  bool optional_recv = false;  // adds kOptionalRecv to the modes
  bool check = false;
  bool profile = false;
  bool raw = false;
  bool one_sided = false;      // rma_bench: messages are puts with a signal
  bool send_receive = false;   // with one_sided: the plugin's isend and irecv are the floor of bandwidth
  std::string raw_congestion;  // empty: the system's default

  PhaseChoice phase = PhaseChoice::kNear;
  int samples = 7;  // kept samples wanted per cell and phase
  int sample_ms = 25;
  int budget_s = 45;  // per mode
  int timeout_s = 60;
  bool pin = true;
  bool priority = true;
  bool yield = false;           // drivers give their CPU away after a pass without progress
  bool keep_disturbed = false;  // samples too during which other processes had a driver's CPU
  std::vector<int> cpus;        // empty: chosen
  uint64_t seed = 1;

  int ranks = 2;     // of allreduce
  int seconds = 10;  // of idle

  std::string wire;           // profile of the network between two namespaces; empty: none
  std::string wire_settings;  // "delay=1ms loss=1%"

  Role role = Role::kLocal;
  std::string host;
  int port = kDefaultPort;

  std::string report;             // the page to write; empty: none
  std::vector<std::string> also;  // of other runs (--json), shown on the page
  std::string note;               // a line of the configuration

  bool csv = false;
  bool json = false;
  bool verbose = false;
};

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);
const char* UsageText();

}  // namespace bench
}  // namespace tcpx
