#include "bench/nccl_bench/options.h"

#include <strings.h>

#include <functional>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/command_line/sizes.h"

namespace tcpx {
namespace nccl_bench {
namespace {

absl::Status Wrong(absl::string_view text) { return absl::InvalidArgumentError(text); }

struct Sweep {
  uint64_t begin = 1 << 10;
  uint64_t end = 64 << 20;
  uint64_t factor = 4;
  bool begin_given = false;
  bool end_given = false;
};

// A buffer of each rank; more than that is a typing error on any GPU.
constexpr uint64_t kBytesMax = 64ULL << 30;

// Words of `all` by their names, or "all" of them.
template <class T, size_t kCount>
absl::Status SetWords(const std::string& option, const std::string& value, const T (&all)[kCount],
                      const char* (*name)(T), std::vector<T>* target) {
  target->clear();
  std::vector<std::string> names;
  for (const T& known : all) names.push_back(name(known));
  for (absl::string_view word : absl::StrSplit(value, ',')) {
    const size_t before = target->size();
    for (size_t i = 0; i < kCount; ++i) {
      if (word == names[i] || word == "all") target->push_back(all[i]);
    }
    if (target->size() > before) continue;
    std::string list = names[0];
    for (size_t i = 1; i < kCount; ++i) absl::StrAppend(&list, ", ", names[i]);
    return Wrong(absl::StrCat(option, ": '", word, "' is none of ", list));
  }
  return absl::OkStatus();
}

class Parser {
 public:
  Parser();
  absl::StatusOr<Options> Parse(const std::vector<std::string>& arguments);

 private:
  using Setter = std::function<absl::Status(const std::string& name, const std::string& value)>;

  void Number(const char* name, int* target, int min, int max);
  void Size(const char* name, uint64_t* target, bool* given);
  void AddWords();
  absl::Status Apply(const std::vector<std::string>& arguments);
  absl::Status Finish();

  Options options_;
  Sweep sweep_;
  std::map<std::string, bool*> flags_;
  std::map<std::string, Setter> valued_;
  bool no_check_ = false;
};

Parser::Parser() {
  flags_["--help"] = &options_.help;
  flags_["-h"] = &options_.help;
  flags_["--graph"] = &options_.graph;
  flags_["--no-check"] = &no_check_;
  Number("-r", &options_.root, 0, 1 << 20);
  Number("-n", &options_.iterations, 1, 1 << 20);
  Number("-w", &options_.warmup, 0, 1 << 20);
  // As many as ports, files and a table of one machine bear.
  Number("--local", &options_.local, 1, 1024);
  Number("--rounds", &options_.rounds, 1, 1 << 20);
  Number("--timeout", &options_.timeout_s, 1, 86400);
  Size("-b", &sweep_.begin, &sweep_.begin_given);
  Size("-e", &sweep_.end, &sweep_.end_given);
  Size("-f", &sweep_.factor, nullptr);
  AddWords();
}

void Parser::Number(const char* name, int* target, int min, int max) {
  valued_[name] = [=](const std::string& option, const std::string& value) {
    int number = 0;
    if (!absl::SimpleAtoi(value, &number) || number < min || number > max) {
      return Wrong(absl::StrCat(option, " takes a number from ", min, " to ", max, ", not '", value, "'"));
    }
    *target = number;
    return absl::OkStatus();
  };
}

void Parser::Size(const char* name, uint64_t* target, bool* given) {
  valued_[name] = [=](const std::string& option, const std::string& value) {
    absl::StatusOr<uint64_t> bytes = bench::ParseSize(value);
    if (!bytes.ok()) return Wrong(absl::StrCat(option, ": ", bytes.status().message()));
    if (*bytes > kBytesMax) return Wrong(absl::StrCat(option, ": ", value, " is above 64G"));
    *target = *bytes;
    if (given != nullptr) *given = true;
    return absl::OkStatus();
  };
}

void Parser::AddWords() {
  valued_["--collective"] = [this](const std::string& option, const std::string& value) {
    return SetWords(option, value, kCollectives, CollectiveName, &options_.collectives);
  };
  valued_["-d"] = [this](const std::string& option, const std::string& value) {
    return SetWords(option, value, kDataTypes, DataTypeName, &options_.types);
  };
  valued_["-o"] = [this](const std::string& option, const std::string& value) {
    return SetWords(option, value, kRedOps, RedOpName, &options_.ops);
  };
  valued_["--mode"] = [this](const std::string& option, const std::string& value) {
    std::vector<Mode> modes;
    absl::Status status = SetWords(option, value, kModes, ModeName, &modes);
    if (status.ok() && modes.size() != 1) return Wrong("--mode takes one mode");
    if (status.ok()) options_.mode = modes[0];
    return status;
  };
  valued_["--nets"] = [this](const std::string&, const std::string& value) {
    options_.nets = absl::StrSplit(value, ',');
    for (const std::string& net : options_.nets) {
      if (net.empty()) return Wrong("--nets takes names with commas between, for example tcpx,Socket");
    }
    return absl::OkStatus();
  };
  valued_["--plugin"] = [this](const std::string&, const std::string& value) {
    options_.plugin = value;
    options_.plugin_given = true;
    return absl::OkStatus();
  };
  valued_["--seed"] = [this](const std::string&, const std::string& value) {
    return absl::SimpleAtoi(value, &options_.seed) ? absl::OkStatus()
                                                   : Wrong(absl::StrCat("--seed takes a number, not '", value, "'"));
  };
}

absl::Status Parser::Apply(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (auto flag = flags_.find(name); flag != flags_.end()) {
      *flag->second = true;
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

absl::Status Parser::Finish() {
  options_.check = !no_check_;
  if (sweep_.begin_given && !sweep_.end_given) sweep_.end = sweep_.begin;
  if (sweep_.end_given && !sweep_.begin_given && sweep_.end < sweep_.begin) sweep_.begin = sweep_.end;
  if (sweep_.factor < 2) return Wrong("-f is at least 2");
  if (sweep_.end < sweep_.begin) return Wrong("-e is smaller than -b");
  options_.sizes = bench::GeometricSweep(sweep_.begin, sweep_.end, sweep_.factor);
  if (options_.local > 0 && options_.root >= options_.local) return Wrong("-r is not one of the ranks");
  if (options_.mode == Mode::kKilled && options_.local == 1) return Wrong("--mode killed needs two ranks");
  return absl::OkStatus();
}

absl::StatusOr<Options> Parser::Parse(const std::vector<std::string>& arguments) {
  absl::Status status = Apply(arguments);
  if (status.ok() && !options_.help) status = Finish();
  if (!status.ok()) return status;
  return options_;
}

}  // namespace

const char* ModeName(Mode mode) {
  switch (mode) {
    case Mode::kBench:
      return "bench";
    case Mode::kSplit:
      return "split";
    case Mode::kClasses:
      return "classes";
    case Mode::kAbort:
      return "abort";
    case Mode::kKilled:
      return "killed";
    case Mode::kReload:
      return "reload";
  }
  return "?";
}

bool IsInternalNet(const std::string& net) {
  return strcasecmp(net.c_str(), "Socket") == 0 || strcasecmp(net.c_str(), "IB") == 0;
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) { return Parser().Parse(arguments); }

}  // namespace nccl_bench
}  // namespace tcpx
