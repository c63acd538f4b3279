// params.h: every environment variable of the plugin, in one table.
//
// Purpose: LoadOptions reads the environment once into Options, which is passed down; nothing below reads it again.
//          docs/parameters.md and tcpx(7) are generated from the same table (tools/parameters).
// Threads: functions read the environment, which NCCL does not change once a plugin is loaded. Options is a value.
// Units:   bytes, nanoseconds (fields ending in _ns), megabits per second (_mbps). In the environment a duration is in
//          the unit that the table names and may have decimals; a byte size may end in K, KB or KiB, and so on with M
//          and G (all powers of 1024).
// Errors:  a value that can't be parsed or is out of range keeps the default and gives one warning that says what is
//          allowed; only NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD are clamped, as in NCCL. An empty value is an
//          unset one. Security has no default to fall back to (IsSecurity): Options::refused.
// Source:  names, meaning and defaults of the NCCL_* variables: NCCL's documentation, "Environment Variables", and its
//          socket transport. 64 lanes: NCCL's limit of threads x sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/clock.h"
#include "common/traffic_class.h"

namespace tcpx {

enum class EngineChoice { kAuto, kIoUring, kEpoll };
enum class Switch { kAuto, kOn, kOff };

// Both ends are included; {0, 0} lets the kernel choose.
struct PortRange {
  int low = 0;
  int high = 0;
  bool any() const { return high == 0; }
  bool operator==(const PortRange& other) const { return low == other.low && high == other.high; }
};

// The initial values are the defaults. Parameters() says what each field means.
struct Options {
  EngineChoice engine = EngineChoice::kAuto;
  int threads = -1;  // -1: PlanThreads decides; 0: caller-driven
  std::string cpus;  // a list that ParseCpuList accepts
  int lanes = 0;  // 0: decided at connect. LoadOptions stores the product of the next two here when TCPX_LANES is unset
  int64_t socket_nthreads = -2;   // -2: unset
  int64_t nsocks_perthread = -2;  // -2: unset
  int64_t express_bytes = 64 << 10;
  int64_t chunk_bytes = 512 << 10;
  int64_t chunk_bytes_min = 64 << 10;  // never above chunk_bytes
  std::string congestion;
  int64_t pacing_mbps = 0;  // 0: unpaced
  int sndbuf = -1;          // -1: the kernel's auto-tuning
  int rcvbuf = -1;
  PortRange port_range;
  std::string secret_file;  // empty: no shared secret
  bool encrypt = false;
  std::string encrypt_cipher;  // empty: the best
  bool require_encryption = false;
  // What was set, can't be read, and may not be taken for its default: no connection may be made. Empty: nothing. For
  // the log.
  std::string refused;
  int64_t linger_ns = 5 * kSecond;
  int64_t hello_timeout_ns = 10 * kSecond;
  int retry_count = 34;
  int64_t retry_sleep_ns = 100 * kMillisecond;
  int64_t peer_timeout_ns = 30 * kSecond;
  int64_t stall_warn_ns = 10 * kSecond;  // 0: never
  bool spread_errors = true;
  bool heal = true;
  Switch steer = Switch::kAuto;  // or kOff
  bool shuffle_lanes = false;    // for tests: lanes are opened, moved and closed at random, towards this host too
  int64_t reconnect_timeout_ns = 15 * kSecond;
  int max_receives = 0;            // 0: decided by the plugin
  bool nccl_optional_recv = true;  // NCCL gives the hint
  int64_t ll_buffer_bytes = -1;    // NCCL's buffers of LL; -1: unset
  bool rma = false;
  bool rma_gdrcopy = false;
  bool gpu_direct_staging = false;
  int64_t gpu_slot_bytes = 256 << 10;
  int64_t gpu_pool_bytes = 32 << 20;
  Switch zerocopy = Switch::kAuto;
  AskedClass traffic_class;       // where NCCL says nothing
  std::string traffic_class_map;  // a text that ParseTrafficClassMap accepts
  std::string ifname;
  std::string family;
  std::string comm_id;
  std::string fuse;            // groups as PlanFusion of net_socket/nic/device_params.h reads them
  std::string speed_mbps;      // speeds as OverrideSpeed of net_socket/nic/device_params.h reads them
  int64_t socket_inline = -1;  // -1: unset
  // Statistics (net_socket/stats).
  bool stats = false;
  std::string stats_dir;     // empty: no file
  std::string stats_socket;  // empty: no socket
  bool stats_lanes = false;
  // The profiler's (profiler/).
  std::string trace_dir;  // empty: no timeline
  std::string trace_events = "api,coll,proxy,net";
  int trace_sample = 1;
  std::string profiler_chain;  // empty: no other profiler
};

// Reads the variables through `getenv_fn` (null: getenv(3)). Each warning is one line for the log. `ours`: those of
// TCPX_ that were set to something valid, "TCPX_LANES=4". Both may be null.
Options LoadOptions(const std::function<const char*(const char*)>& getenv_fn, std::vector<std::string>* warnings,
                    std::vector<std::string>* ours = nullptr);

// As TestParameters, but read by the io_uring engine alone (docs/kernels.md).
inline constexpr char kTestUringRung[] = "TCPX_TEST_URING_RUNG";

// A name, in any case, that speaks of encryption or a secret. Any value of such a parameter means to be safe.
bool IsSecurity(absl::string_view name);

// How the text of a variable becomes a field.
enum class ParameterKind {
  kCount,         // int, or a bool that is NCCL's: 0 or 1
  kLowered,       // int64_t; more than `max` counts as `max`
  kBytes,         // int or int64_t; suffixes K, M, G, also followed by B or iB
  kMbps,          // int64_t
  kSeconds,       // int64_t nanoseconds
  kMilliseconds,  // int64_t nanoseconds
  kFlag,          // bool: on, true, yes or 1; off, false, no or 0
  kEngine,        // auto, io_uring, epoll
  kSwitch,        // auto, and what kFlag has
  kAutoOff,       // Switch: auto, and the words for off
  kPorts,         // "lo-hi"
  kCpuList,       // "0-3,7"
  kClass,         // an octet or an id, or the name of a DSCP
  kClassMap,      // "0:cs1,1:46"
  kText,          // anything
};

using ParameterField =
    std::variant<int Options::*, int64_t Options::*, bool Options::*, EngineChoice Options::*, Switch Options::*,
                 PortRange Options::*, AskedClass Options::*, std::string Options::*>;

// Who may need a parameter: most users who run jobs, operators of the machines, or few.
enum class Audience { kMost, kOperator, kFew };

// In the unit of the kind; all 0 where there is no range.
struct ParameterRange {
  int64_t min = 0;
  int64_t max = 0;
  // A value outside of it, and the word for it: "auto" for -1, say. Both the word and the number are accepted.
  const char* word = nullptr;  // null: there is none
  int64_t special = 0;
};

struct Parameter {
  const char* name;
  ParameterKind kind;
  ParameterField field;
  ParameterRange range;
  Audience audience;
  const char* brief;             // what it does, in a few words
  const char* help;              // what it does, and when to change it
  const char* values = nullptr;  // what kText may be; else null
};

absl::Span<const Parameter> Parameters();
// TCPX_TEST_ names that only tests set, and no page shows: in a job one is a WARN.
absl::Span<const Parameter> TestParameters();

const char* EngineName(EngineChoice choice);
const char* SwitchName(Switch choice);

// Nanoseconds of one unit of a duration; 1 for everything that is no duration.
int64_t UnitOf(ParameterKind kind);
// A parameter's value in `options`: "64K", "auto", "5 s"; "empty" for no text.
std::string ValueOf(const Parameter& parameter, const Options& options);
std::string DefaultText(const Parameter& parameter);
// "auto (0) or 1 to 64", "auto, io_uring or epoll", "0 to 600 s".
std::string AllowedText(const Parameter& parameter);

// Names that were misspelt have no effect, and nothing else would say so. One warning for each variable of
// `environment` (as environ(7), null: none) that begins with TCPX_ and is no parameter, by name: with the parameter
// whose name is nearest, or, where it was one once, with what to do instead. TCPX_TEST_ is for tests and never one; a
// name of these that has an effect here is a warning that says so.
std::vector<std::string> UnknownParameters(const char* const* environment);

// The warning of the first variable whose name is almost that of a parameter that protects, or holds TCPX and speaks of
// encryption or a secret, in any case of letters and with anything before it: its user believes to be safe. Empty:
// there is none.
std::string MisspeltSecurity(const char* const* environment);

// It was a parameter once.
bool IsRemovedParameter(absl::string_view name);

// The parameter that begins with `prefix` and whose name is nearest to `as_written`; empty if none is near.
std::string NearestParameter(absl::string_view as_written, absl::string_view prefix);

}  // namespace tcpx
