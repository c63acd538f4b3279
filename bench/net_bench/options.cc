#include "bench/net_bench/options.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/command_line/option_parser.h"
#include "bench/net_bench/role_options.h"
#include "bench/net_bench/shared_page.h"
#include "bench/netns/wire/profiles.h"

namespace tcpx {
namespace bench {
namespace {

constexpr struct {
  const char* name;
  Mode mode;
} kModes[] = {
    {"latency", Mode::kLatency},     {"bandwidth", Mode::kBandwidth},
    {"bidir", Mode::kBidirectional}, {"rate", Mode::kRate},
    {"many", Mode::kMany},           {"idle", Mode::kIdle},
    {"setup", Mode::kSetup},         {"allreduce", Mode::kAllreduce},
    {"mixed", Mode::kMixed},         {"optional-recv", Mode::kOptionalRecv},
};

class Parser {
 public:
  Parser();
  absl::StatusOr<Options> Parse(const std::vector<std::string>& arguments);

 private:
  void AddNumbers();
  void AddWords();
  absl::Status SetModes(const std::string& name, const std::string& value);
  absl::Status SetPhase(const std::string& value);
  absl::Status SetApi(const std::string& value);
  absl::Status SetWire(const std::string& value);
  absl::Status Finish();
  absl::Status CheckCombination() const;
  absl::Status CheckWire() const;

  Options options_;
  Sweep sweep_;
  OptionParser parser_;
};

Parser::Parser() {
  parser_.Flag("--help", &options_.help);
  parser_.Flag("-h", &options_.help);
  parser_.Flag("--version", &options_.version);
  parser_.Flag("--check", &options_.check);
  parser_.Flag("--profile", &options_.profile);
  parser_.Flag("--raw", &options_.raw);
  parser_.Flag("--optional-recv", &options_.optional_recv);
  parser_.Flag("--no-pin", &options_.pin, false);
  parser_.Flag("--no-priority", &options_.priority, false);
  parser_.Flag("--yield", &options_.yield);
  parser_.Flag("--keep-disturbed", &options_.keep_disturbed);
  parser_.Flag("--one-isend-per-pass", &options_.one_isend_per_pass);
  parser_.Flag("--csv", &options_.csv);
  parser_.Flag("--json", &options_.json);
  parser_.Flag("--verbose", &options_.verbose);
  parser_.Text("--plugin", &options_.plugin);
  parser_.Text("--vs", &options_.vs);
  parser_.Text("--report", &options_.report);
  parser_.Text("--note", &options_.note);
  parser_.Text("--wire-set", &options_.wire_settings);
  parser_.Text("--raw-cc", &options_.raw_congestion);
  AddNumbers();
  AddWords();
}

void Parser::AddNumbers() {
  parser_.Number("--dev", &options_.device, 0, 127);
  parser_.Number("--traffic-class", &options_.traffic_class, 0, 255);
  parser_.Number("-n", &options_.iterations, 1, 1 << 30);
  parser_.Number("-w", &options_.warmup, 0, 1 << 30);
  // NCCL_NET_MAX_REQUESTS: a plugin need not take more.
  parser_.Number("--window", &options_.window, 1, 32);
  parser_.Number("--samples", &options_.samples, 1, 1000);
  parser_.Number("--sample-ms", &options_.sample_ms, 1, 10000);
  parser_.Number("--budget", &options_.budget_s, 1, 86400);
  parser_.Number("--timeout", &options_.timeout_s, 1, 86400);
  parser_.Number("--ranks", &options_.ranks, 2, kRanksMax);
  parser_.Number("--seconds", &options_.seconds, 1, 3600);
  parser_.Number("--seed", &options_.seed);
  parser_.Numbers("--conns", &options_.connections, 1, 100000);
  parser_.Numbers("--cpus", &options_.cpus, 0, 8191);
  // NCCL_MAX_NET_SIZE: NCCL never sends more at once.
  parser_.SizeSweep(&sweep_, 1ULL << 30, "1G, the largest message of NCCL");
}

void Parser::AddWords() {
  using Text = const std::string&;
  parser_.Value("--mode", [this](Text name, Text value) { return SetModes(name, value); });
  parser_.Value("--phase", [this](Text, Text value) { return SetPhase(value); });
  parser_.Value("--api", [this](Text, Text value) { return SetApi(value); });
  parser_.Value("--wire", [this](Text, Text value) { return SetWire(value); });
  parser_.Value("--also", [this](Text, Text value) {
    options_.also.push_back(value);
    return absl::OkStatus();
  });
  AddRoleOptions(&options_, &parser_);
}

absl::Status Parser::SetModes(const std::string& name, const std::string& value) {
  std::vector<std::string> names;
  for (const auto& known : kModes) names.push_back(known.name);
  absl::StatusOr<std::vector<size_t>> places = ParseWords(name, value, names);
  if (!places.ok()) return places.status();
  options_.modes.clear();
  for (const size_t place : *places) options_.modes.push_back(kModes[place].mode);
  return absl::OkStatus();
}

absl::Status Parser::SetPhase(const std::string& value) {
  if (value == "near") {
    options_.phase = PhaseChoice::kNear;
  } else if (value == "far") {
    options_.phase = PhaseChoice::kFar;
  } else if (value == "any") {
    options_.phase = PhaseChoice::kAny;
  } else {
    return WrongUsage(absl::StrCat("--phase takes near, far or any, not '", value, "'"));
  }
  return absl::OkStatus();
}

absl::Status Parser::SetApi(const std::string& value) {
  absl::string_view digits = value;
  absl::ConsumePrefix(&digits, "v");
  absl::StatusOr<int> version = ParseNumber("--api", digits, 6, 12);
  if (version.ok()) options_.api_version = *version;
  return version.status();
}

absl::Status Parser::SetWire(const std::string& value) {
  if (wire::FindProfile(value) == nullptr) {
    return WrongUsage(absl::StrCat("--wire: '", value, "' is none of ", wire::ProfileNames()));
  }
  options_.wire = value;
  options_.raw = true;
  return absl::OkStatus();
}

absl::Status Parser::CheckCombination() const {
  if (options_.plugin.empty() && !options_.raw && options_.role != Role::kListen) {
    return WrongUsage("give a plugin (--plugin PATH), the bare sockets (--raw), or both");
  }
  for (Mode mode : options_.modes) {
    const bool plugin_only =
        mode == Mode::kIdle || mode == Mode::kSetup || mode == Mode::kAllreduce || mode == Mode::kOptionalRecv;
    if (plugin_only && options_.plugin.empty()) {
      return WrongUsage(absl::StrCat("--mode ", ModeName(mode), " needs --plugin PATH"));
    }
    if (mode == Mode::kAllreduce && options_.role != Role::kLocal) {
      return WrongUsage("--mode allreduce runs on one machine only: leave out --listen and --connect");
    }
    if (mode == Mode::kAllreduce && options_.modes.size() > 1) {
      return WrongUsage("--mode allreduce can't be combined with another mode");
    }
  }
  if (options_.traffic_class >= 0 && options_.plugin.empty()) return WrongUsage("--traffic-class needs --plugin PATH");
  if (!options_.vs.empty() && options_.plugin.empty()) return WrongUsage("--vs needs --plugin PATH");
  if (!options_.also.empty() && options_.report.empty()) return WrongUsage("--also needs --report FILE");
  if (options_.csv && options_.json) return WrongUsage("--csv and --json exclude each other");
  if (options_.cpus.size() == 1) return WrongUsage("--cpus takes one CPU per process, for example 2,3");
  return CheckWire();
}

absl::Status Parser::CheckWire() const {
  if (options_.wire.empty()) {
    return options_.wire_settings.empty() ? absl::OkStatus() : WrongUsage("--wire-set needs --wire PROFILE");
  }
  if (options_.role != Role::kLocal) {
    return WrongUsage("--wire makes both hosts itself: leave out --listen and --connect");
  }
  if (!options_.vs.empty()) return WrongUsage("--vs runs without --wire only");
  if (options_.wire == "incast" && !options_.report.empty()) {
    return WrongUsage("--report: what --wire incast measures is no table of net_bench");
  }
  if (options_.modes[0] == Mode::kAllreduce) return WrongUsage("--mode allreduce runs without --wire only");
  return absl::OkStatus();
}

absl::Status Parser::Finish() {
  if (options_.optional_recv) options_.modes.push_back(Mode::kOptionalRecv);
  if (options_.modes.empty()) options_.modes = {Mode::kLatency, Mode::kBandwidth};
  if (sweep_.begin.has_value() || sweep_.end.has_value()) {
    const uint64_t begin = sweep_.begin.value_or(8);
    absl::StatusOr<std::vector<uint64_t>> sizes =
        SweepSizes(begin, sweep_.end.value_or(begin), sweep_.factor.value_or(2));
    if (!sizes.ok()) return sizes.status();
    options_.sizes = *std::move(sizes);
  }
  return CheckCombination();
}

absl::StatusOr<Options> Parser::Parse(const std::vector<std::string>& arguments) {
  absl::Status status = parser_.Parse(arguments);
  if (status.ok() && !options_.help && !options_.version) status = Finish();
  if (!status.ok()) return status;
  return options_;
}

}  // namespace

const char* ModeName(Mode mode) {
  for (const auto& known : kModes) {
    if (mode == known.mode) return known.name;
  }
  return "?";
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) { return Parser().Parse(arguments); }

}  // namespace bench
}  // namespace tcpx
