#include "bench/nccl_bench/options.h"

#include <strings.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "bench/command_line/option_parser.h"

namespace tcpx {
namespace nccl_bench {
namespace {

using bench::WrongUsage;

// A buffer of each rank; more than that is a typing error on any GPU.
constexpr uint64_t kBytesMax = 64ULL << 30;

// Words of `all` by their names, or "all" of them.
template <class T, size_t kCount>
absl::Status SetWords(const std::string& option, const std::string& value, const T (&all)[kCount],
                      const char* (*name)(T), std::vector<T>* target) {
  std::vector<std::string> names;
  for (const T& known : all) names.push_back(name(known));
  absl::StatusOr<std::vector<size_t>> places = bench::ParseWords(option, value, names, "all");
  if (!places.ok()) return places.status();
  target->clear();
  for (const size_t place : *places) target->push_back(all[place]);
  return absl::OkStatus();
}

class Parser {
 public:
  Parser();
  absl::StatusOr<Options> Parse(const std::vector<std::string>& arguments);

 private:
  using Text = const std::string&;

  void AddWords();
  absl::Status SetMode(const std::string& name, const std::string& value);
  absl::Status SetNets(const std::string& value);
  absl::Status Finish();

  Options options_;
  bench::Sweep sweep_;
  bench::OptionParser parser_;
};

Parser::Parser() {
  parser_.Flag("--help", &options_.help);
  parser_.Flag("-h", &options_.help);
  parser_.Flag("--version", &options_.version);
  parser_.Flag("--graph", &options_.graph);
  parser_.Flag("--no-check", &options_.check, false);
  parser_.Number("-r", &options_.root, 0, 1 << 20);
  parser_.Number("-n", &options_.iterations, 1, 1 << 20);
  parser_.Number("-w", &options_.warmup, 0, 1 << 20);
  // As many as ports, files and a table of one machine bear.
  parser_.Number("--local", &options_.local, 1, 1024);
  parser_.Number("--rounds", &options_.rounds, 1, 1 << 20);
  parser_.Number("--timeout", &options_.timeout_s, 1, 86400);
  parser_.Number("--seed", &options_.seed);
  parser_.SizeSweep(&sweep_, kBytesMax, "64G");
  AddWords();
}

void Parser::AddWords() {
  parser_.Value("--collective", [this](Text name, Text value) {
    return SetWords(name, value, kCollectives, CollectiveName, &options_.collectives);
  });
  parser_.Value(
      "-d", [this](Text name, Text value) { return SetWords(name, value, kDataTypes, DataTypeName, &options_.types); });
  parser_.Value("-o",
                [this](Text name, Text value) { return SetWords(name, value, kRedOps, RedOpName, &options_.ops); });
  parser_.Value("--mode", [this](Text name, Text value) { return SetMode(name, value); });
  parser_.Value("--nets", [this](Text, Text value) { return SetNets(value); });
  parser_.Value("--plugin", [this](Text, Text value) {
    options_.plugin = value;
    options_.plugin_given = true;
    return absl::OkStatus();
  });
}

absl::Status Parser::SetMode(const std::string& name, const std::string& value) {
  std::vector<Mode> modes;
  absl::Status status = SetWords(name, value, kModes, ModeName, &modes);
  if (status.ok() && modes.size() != 1) return WrongUsage("--mode takes one mode");
  if (status.ok()) options_.mode = modes[0];
  return status;
}

absl::Status Parser::SetNets(const std::string& value) {
  options_.nets = absl::StrSplit(value, ',');
  for (const std::string& net : options_.nets) {
    if (net.empty()) return WrongUsage("--nets takes names with commas between, for example tcpx,Socket");
  }
  return absl::OkStatus();
}

absl::Status Parser::Finish() {
  uint64_t begin = sweep_.begin.value_or(1 << 10);
  const uint64_t end = sweep_.end.value_or(sweep_.begin.value_or(64 << 20));
  if (!sweep_.begin.has_value()) begin = std::min(begin, end);
  absl::StatusOr<std::vector<uint64_t>> sizes = bench::SweepSizes(begin, end, sweep_.factor.value_or(4));
  if (!sizes.ok()) return sizes.status();
  options_.sizes = *std::move(sizes);
  if (options_.local > 0 && options_.root >= options_.local) return WrongUsage("-r is not one of the ranks");
  if (options_.mode == Mode::kKilled && options_.local == 1) return WrongUsage("--mode killed needs two ranks");
  return absl::OkStatus();
}

absl::StatusOr<Options> Parser::Parse(const std::vector<std::string>& arguments) {
  absl::Status status = parser_.Parse(arguments);
  if (status.ok() && !options_.help && !options_.version) status = Finish();
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
    case Mode::kOneSided:
      return "one-sided";
  }
  return "?";
}

bool IsInternalNet(const std::string& net) {
  return strcasecmp(net.c_str(), "Socket") == 0 || strcasecmp(net.c_str(), "IB") == 0;
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) { return Parser().Parse(arguments); }

}  // namespace nccl_bench
}  // namespace tcpx
