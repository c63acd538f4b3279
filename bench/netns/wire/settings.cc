#include "bench/netns/wire/settings.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tcpx {
namespace wire {
namespace {

constexpr uint64_t kQueueLeast = 256 << 10;
constexpr double kDurationMax = 60e9;
constexpr double kRateMax = 1e12;

struct Unit {
  absl::string_view suffix;
  double factor;
};

absl::Status Wrong(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no ", what));
}

// The first suffix that fits counts, so the longer ones come first.
template <size_t kCount>
absl::StatusOr<double> ParseWithUnit(absl::string_view text, const Unit (&units)[kCount], double most,
                                     absl::string_view what) {
  absl::string_view digits = text;
  double factor = 0;
  for (const Unit& unit : units) {
    if (factor == 0 && absl::ConsumeSuffix(&digits, unit.suffix)) factor = unit.factor;
  }
  double number = 0;
  if (digits == "0") return 0;
  const auto digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  const bool plain = !digits.empty() && digit(digits.front()) && digit(digits.back());
  if (factor == 0 || !plain || !absl::SimpleAtod(digits, &number) || !(number >= 0) || !(number * factor <= most)) {
    return Wrong(text, what);
  }
  return number * factor;
}

template <typename Value, typename Parsed>
absl::Status Put(const absl::StatusOr<Parsed>& parsed, Value* target) {
  if (parsed.ok()) *target = static_cast<Value>(*parsed);
  return parsed.status();
}

absl::Status PutSwitch(absl::string_view text, bool* target) {
  if (text != "on" && text != "off") return Wrong(text, "switch: on or off");
  *target = text == "on";
  return absl::OkStatus();
}

absl::Status PutRun(absl::string_view text, double* target) {
  double run = 0;
  if (!absl::SimpleAtod(text, &run) || !(run >= 1) || !(run <= 1e6)) {
    return Wrong(text, "length of a run: segments, at least 1");
  }
  *target = run;
  return absl::OkStatus();
}

constexpr absl::string_view kPathKeys[] = {"delay",    "jitter",  "rate",       "queue", "loss",
                                           "loss-run", "reorder", "reorder-by", "cut"};
constexpr absl::string_view kWholeKeys[] = {"paths", "flow-rate", "flow-queue", "piece"};

template <size_t kCount>
bool Among(const absl::string_view (&keys)[kCount], absl::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

absl::Status SetPath(absl::string_view key, absl::string_view value, PathSettings* path) {
  if (key == "delay") return Put(ParseDuration(value), &path->delay_ns);
  if (key == "jitter") return Put(ParseDuration(value), &path->jitter_ns);
  if (key == "rate") return Put(ParseRate(value), &path->rate);
  if (key == "queue") return Put(ParseBytes(value), &path->queue);
  if (key == "loss") return Put(ParseShare(value), &path->loss);
  if (key == "loss-run") return PutRun(value, &path->loss_run);
  if (key == "reorder") return Put(ParseShare(value), &path->reorder);
  if (key == "reorder-by") return Put(ParseDuration(value), &path->reorder_by_ns);
  if (key == "cut") return PutSwitch(value, &path->cut);
  return Wrong(key, "setting of a path");
}

absl::Status SetPaths(absl::string_view value, Settings* settings) {
  int count = 0;
  if (!absl::SimpleAtoi(value, &count) || count < 1 || count > kPathsMax) {
    return Wrong(value, absl::StrCat("number of paths: 1 to ", kPathsMax));
  }
  settings->paths.resize(static_cast<size_t>(count), PathSettings(settings->paths.front()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> ParseDuration(absl::string_view text) {
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 0}};
  absl::StatusOr<double> value = ParseWithUnit(text, kUnits, kDurationMax, "duration, like 50us, 20ms or 1s");
  if (!value.ok()) return value.status();
  return static_cast<int64_t>(*value);
}

absl::StatusOr<uint64_t> ParseRate(absl::string_view text) {
  constexpr Unit kUnits[] = {{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"", 1}};
  absl::StatusOr<double> value = ParseWithUnit(text, kUnits, kRateMax, "rate in bits per second, like 200M or 2G");
  if (!value.ok()) return value.status();
  return static_cast<uint64_t>(*value);
}

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  constexpr Unit kUnits[] = {{"K", 1024}, {"M", 1048576}, {"G", 1073741824}, {"", 1}};
  absl::StatusOr<double> value = ParseWithUnit(text, kUnits, kRateMax, "size in bytes, like 64K or 1M");
  if (!value.ok()) return value.status();
  return static_cast<uint64_t>(*value);
}

absl::StatusOr<double> ParseShare(absl::string_view text) {
  constexpr Unit kUnits[] = {{"%", 0.01}, {"", 0}};
  return ParseWithUnit(text, kUnits, 1, "share, like 0.1%");
}

bool IsKey(absl::string_view key) { return Among(kPathKeys, key) || Among(kWholeKeys, key); }

absl::Status SetEverywhere(absl::string_view key, absl::string_view value, Settings* settings) {
  if (key == "paths") return SetPaths(value, settings);
  if (key == "flow-rate") return Put(ParseRate(value), &settings->flow_rate);
  if (key == "flow-queue") return Put(ParseBytes(value), &settings->flow_queue);
  if (key == "piece") return Put(ParseDuration(value), &settings->piece_ns);
  if (!Among(kPathKeys, key)) return Wrong(key, "setting");
  for (PathSettings& path : settings->paths) {
    if (absl::Status status = SetPath(key, value, &path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SetOfPath(int path, absl::string_view key, absl::string_view value, Settings* settings) {
  if (path < 0 || path >= static_cast<int>(settings->paths.size())) {
    return Wrong(absl::StrCat(path), absl::StrCat("path: they are 0 to ", settings->paths.size() - 1));
  }
  return SetPath(key, value, &settings->paths[static_cast<size_t>(path)]);
}

uint64_t QueueOf(const PathSettings& path) {
  if (path.queue > 0) return path.queue;
  const double round_trip = 2.0 * static_cast<double>(path.delay_ns);
  return std::max(kQueueLeast, static_cast<uint64_t>(static_cast<double>(path.rate) * round_trip / 8e9));
}

uint64_t FlowQueueOf(const Settings& settings, const PathSettings& path) {
  PathSettings flow;
  flow.delay_ns = path.delay_ns;
  flow.rate = settings.flow_rate;
  flow.queue = settings.flow_queue;
  return QueueOf(flow);
}

const char* SettingsHelp() {
  return R"(of the network as a whole
  paths N             each flow takes the one that a hash of its addresses and ports names (default 1)
  flow-rate RATE      of each flow, before its path: 100M, 2G bits per second; 0: no limit
  flow-queue BYTES    in front of it (default: what a round trip holds, at least 256K)
  piece DURATION      how long a GSO frame may take a path before it is cut in pieces (default 200us)
of every path, or of one (path N KEY VALUE)
  rate RATE           of all its flows together
  queue BYTES         in front of it; what finds it full is lost (default: what a round trip holds, at least 256K)
  delay DURATION      one way: 10us to 100ms and more
  jitter DURATION     the delay varies by up to this much; the order stays
  loss SHARE          of segments: 0.1%
  loss-run N          average length of a run of losses, in segments (default 1)
  reorder SHARE       of segments that others overtake, because they wait longer
  reorder-by DURATION by this much (default 1ms)
  cut on|off          nothing passes, and what is under way is lost
)";
}

}  // namespace wire
}  // namespace tcpx
