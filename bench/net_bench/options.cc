#include "bench/net_bench/options.h"

#include <functional>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/command_line/sizes.h"
#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {
namespace {

constexpr struct {
  const char* name;
  Mode mode;
} kModes[] = {
    {"latency", Mode::kLatency}, {"bandwidth", Mode::kBandwidth}, {"bidir", Mode::kBidirectional},
    {"rate", Mode::kRate},       {"many", Mode::kMany},           {"idle", Mode::kIdle},
    {"setup", Mode::kSetup},     {"allreduce", Mode::kAllreduce}, {"optional-recv", Mode::kOptionalRecv},
};

absl::Status Wrong(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::StatusOr<int> ParseInt(absl::string_view name, absl::string_view text, int min, int max) {
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
    return Wrong(absl::StrCat(name, " takes a number from ", min, " to ", max, ", not '", text, "'"));
  }
  return value;
}

// The sweep as typed; turned into Options::sizes once all of it is known.
struct Sweep {
  bool begin_given = false;
  bool end_given = false;
  uint64_t begin = 8;
  uint64_t end = 0;
  uint64_t factor = 2;
};

class Parser {
 public:
  Parser();
  absl::StatusOr<Options> Parse(const std::vector<std::string>& arguments);

 private:
  using Setter = std::function<absl::Status(const std::string& name, const std::string& value)>;

  void Flag(const char* name, bool* target, bool value = true);
  void Number(const char* name, int* target, int min, int max);
  void Text(const char* name, std::string* target);
  void AddSweep();
  void AddDestinations();
  absl::Status SetModes(const std::string& value);
  absl::Status SetPhase(const std::string& value);
  absl::Status SetApi(const std::string& value);
  absl::Status SetHost(const std::string& value);
  absl::Status SetNumbers(const std::string& name, const std::string& value, int min, int max,
                          std::vector<int>* target);
  absl::Status Apply(const std::vector<std::string>& arguments);
  absl::Status Finish();
  absl::Status CheckCombination() const;

  Options options_;
  Sweep sweep_;
  std::map<std::string, std::pair<bool*, bool>> flags_;
  std::map<std::string, Setter> valued_;
};

Parser::Parser() {
  Flag("--help", &options_.help);
  Flag("-h", &options_.help);
  Flag("--check", &options_.check);
  Flag("--profile", &options_.profile);
  Flag("--raw", &options_.raw);
  Flag("--optional-recv", &options_.optional_recv);
  Flag("--no-pin", &options_.pin, false);
  Flag("--no-priority", &options_.priority, false);
  Flag("--one-isend-per-pass", &options_.one_isend_per_pass);
  Flag("--csv", &options_.csv);
  Flag("--json", &options_.json);
  Flag("--verbose", &options_.verbose);
  Text("--plugin", &options_.plugin);
  Text("--raw-cc", &options_.raw_congestion);
  Number("--dev", &options_.device, 0, 127);
  Number("--traffic-class", &options_.traffic_class, 0, 255);
  Number("-n", &options_.iterations, 1, 1 << 30);
  Number("-w", &options_.warmup, 0, 1 << 30);
  // NCCL_NET_MAX_REQUESTS: a plugin need not take more.
  Number("--window", &options_.window, 1, 32);
  Number("--samples", &options_.samples, 1, 1000);
  Number("--sample-ms", &options_.sample_ms, 1, 10000);
  Number("--budget", &options_.budget_s, 1, 86400);
  Number("--timeout", &options_.timeout_s, 1, 86400);
  Number("--ranks", &options_.ranks, 2, kRanksMax);
  Number("--seconds", &options_.seconds, 1, 3600);
  AddSweep();
  AddDestinations();
}

void Parser::Flag(const char* name, bool* target, bool value) { flags_[name] = {target, value}; }

void Parser::Number(const char* name, int* target, int min, int max) {
  valued_[name] = [=](const std::string& flag, const std::string& value) {
    absl::StatusOr<int> number = ParseInt(flag, value, min, max);
    if (number.ok()) *target = *number;
    return number.status();
  };
}

void Parser::Text(const char* name, std::string* target) {
  valued_[name] = [=](const std::string&, const std::string& value) {
    *target = value;
    return absl::OkStatus();
  };
}

void Parser::AddSweep() {
  const auto size = [this](uint64_t* target, bool* given) -> Setter {
    return [=](const std::string& flag, const std::string& value) -> absl::Status {
      absl::StatusOr<uint64_t> bytes = ParseSize(value);
      if (!bytes.ok()) return Wrong(absl::StrCat(flag, ": ", bytes.status().message()));
      // NCCL_MAX_NET_SIZE: NCCL never sends more at once.
      if (*bytes > (1ULL << 30))
        return Wrong(absl::StrCat(flag, ": ", value, " is above 1G, the largest message of NCCL"));
      *target = *bytes;
      if (given != nullptr) *given = true;
      return absl::OkStatus();
    };
  };
  valued_["-b"] = size(&sweep_.begin, &sweep_.begin_given);
  valued_["-e"] = size(&sweep_.end, &sweep_.end_given);
  valued_["-f"] = size(&sweep_.factor, nullptr);
}

void Parser::AddDestinations() {
  valued_["--mode"] = [this](const std::string&, const std::string& value) { return SetModes(value); };
  valued_["--phase"] = [this](const std::string&, const std::string& value) { return SetPhase(value); };
  valued_["--api"] = [this](const std::string&, const std::string& value) { return SetApi(value); };
  valued_["--connect"] = [this](const std::string&, const std::string& value) { return SetHost(value); };
  valued_["--conns"] = [this](const std::string& flag, const std::string& value) {
    return SetNumbers(flag, value, 1, 100000, &options_.connections);
  };
  valued_["--cpus"] = [this](const std::string& flag, const std::string& value) {
    return SetNumbers(flag, value, 0, 8191, &options_.cpus);
  };
  valued_["--seed"] = [this](const std::string&, const std::string& value) {
    return absl::SimpleAtoi(value, &options_.seed) ? absl::OkStatus()
                                                   : Wrong(absl::StrCat("--seed takes a number, not '", value, "'"));
  };
}

absl::Status Parser::SetModes(const std::string& value) {
  options_.modes.clear();
  for (absl::string_view word : absl::StrSplit(value, ',')) {
    const size_t before = options_.modes.size();
    for (const auto& known : kModes) {
      if (word == known.name) options_.modes.push_back(known.mode);
    }
    if (options_.modes.size() == before) {
      return Wrong(absl::StrCat("--mode: '", word,
                                "' is none of latency, bandwidth, bidir, rate, many, idle, setup, allreduce, "
                                "optional-recv"));
    }
  }
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
    return Wrong(absl::StrCat("--phase takes near, far or any, not '", value, "'"));
  }
  return absl::OkStatus();
}

absl::Status Parser::SetApi(const std::string& value) {
  absl::string_view digits = value;
  absl::ConsumePrefix(&digits, "v");
  absl::StatusOr<int> version = ParseInt("--api", digits, 6, 12);
  if (version.ok()) options_.api_version = *version;
  return version.status();
}

// HOST, HOST:PORT, an IPv6 address, or [IPv6 address]:PORT.
absl::Status Parser::SetHost(const std::string& value) {
  options_.role = Role::kConnect;
  absl::string_view host = value;
  absl::string_view port;
  if (absl::ConsumePrefix(&host, "[")) {
    const size_t close = host.find(']');
    if (close == absl::string_view::npos) return Wrong(absl::StrCat("--connect: no ']' in '", value, "'"));
    port = host.substr(close + 1);
    host = host.substr(0, close);
    if (!port.empty() && !absl::ConsumePrefix(&port, ":")) {
      return Wrong(absl::StrCat("--connect: '", value, "' is not [ADDRESS]:PORT"));
    }
  } else if (const size_t colon = host.find(':'); colon != absl::string_view::npos && colon == host.rfind(':')) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.empty()) return Wrong("--connect takes HOST[:PORT]");
  options_.host = std::string(host);
  if (port.empty()) return absl::OkStatus();
  absl::StatusOr<int> number = ParseInt("the port of --connect", port, 1, 65535);
  if (number.ok()) options_.port = *number;
  return number.status();
}

absl::Status Parser::SetNumbers(const std::string& name, const std::string& value, int min, int max,
                                std::vector<int>* target) {
  target->clear();
  for (absl::string_view word : absl::StrSplit(value, ',')) {
    absl::StatusOr<int> number = ParseInt(name, word, min, max);
    if (!number.ok()) return number.status();
    target->push_back(*number);
  }
  return absl::OkStatus();
}

absl::Status Parser::Apply(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (auto flag = flags_.find(name); flag != flags_.end()) {
      *flag->second.first = flag->second.second;
      continue;
    }
    if (name == "--listen") {  // The one option whose value may be left out.
      options_.role = Role::kListen;
      if (i + 1 == arguments.size() || arguments[i + 1].empty() || arguments[i + 1][0] == '-') continue;
      absl::StatusOr<int> port = ParseInt(name, arguments[++i], 0, 65535);
      if (!port.ok()) return port.status();
      options_.port = *port;
      continue;
    }
    std::string value;
    const size_t equals = name.find('=');
    const bool joined = name.size() > 2 && name[1] == '-' && equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    auto valued = valued_.find(name);
    if (valued == valued_.end()) return Wrong(absl::StrCat("unknown option '", arguments[i], "'"));
    if (!joined) {
      if (i + 1 == arguments.size()) return Wrong(absl::StrCat(name, " needs a value"));
      value = arguments[++i];
    }
    if (absl::Status status = valued->second(name, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Parser::CheckCombination() const {
  if (options_.plugin.empty() && !options_.raw && options_.role != Role::kListen) {
    return Wrong("give a plugin (--plugin PATH), the bare sockets (--raw), or both");
  }
  for (Mode mode : options_.modes) {
    const bool plugin_only =
        mode == Mode::kIdle || mode == Mode::kSetup || mode == Mode::kAllreduce || mode == Mode::kOptionalRecv;
    if (plugin_only && options_.plugin.empty()) {
      return Wrong(absl::StrCat("--mode ", ModeName(mode), " needs --plugin PATH"));
    }
    if (mode == Mode::kAllreduce && options_.role != Role::kLocal) {
      return Wrong("--mode allreduce runs on one machine only: leave out --listen and --connect");
    }
    if (mode == Mode::kAllreduce && options_.modes.size() > 1) {
      return Wrong("--mode allreduce can't be combined with another mode");
    }
  }
  if (options_.traffic_class >= 0 && options_.plugin.empty()) return Wrong("--traffic-class needs --plugin PATH");
  if (options_.csv && options_.json) return Wrong("--csv and --json exclude each other");
  if (options_.cpus.size() == 1) return Wrong("--cpus takes one CPU per process, for example 2,3");
  return absl::OkStatus();
}

absl::Status Parser::Finish() {
  if (options_.optional_recv) options_.modes.push_back(Mode::kOptionalRecv);
  if (options_.modes.empty()) options_.modes = {Mode::kLatency, Mode::kBandwidth};
  if (sweep_.begin_given || sweep_.end_given) {
    if (!sweep_.end_given) sweep_.end = sweep_.begin;
    if (sweep_.factor < 2) return Wrong("-f is at least 2");
    if (sweep_.end < sweep_.begin) return Wrong("-e is smaller than -b");
    options_.sizes = GeometricSweep(sweep_.begin, sweep_.end, sweep_.factor);
  }
  return CheckCombination();
}

absl::StatusOr<Options> Parser::Parse(const std::vector<std::string>& arguments) {
  absl::Status status = Apply(arguments);
  if (status.ok() && !options_.help) status = Finish();
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
