#include "bench/rma_bench/options.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "bench/command_line/option_parser.h"
#include "bench/net_bench/role_options.h"

namespace tcpx {
namespace bench {
namespace {

constexpr uint64_t kSizeMax = 64 << 20;

absl::Status SetModes(const std::string& name, const std::string& value, std::vector<Mode>* modes) {
  const Mode known[] = {Mode::kLatency, Mode::kRate, Mode::kBandwidth};
  auto words = ParseWords(name, value, {"latency", "rate", "bandwidth"}, "all");
  if (!words.ok()) return words.status();
  modes->clear();
  for (size_t word : *words) modes->push_back(known[word]);
  return absl::OkStatus();
}

absl::Status SetPhase(const std::string& name, const std::string& value, PhaseChoice* phase) {
  auto words = ParseWords(name, value, {"near", "far", "any"});
  if (!words.ok()) return words.status();
  if (words->size() != 1) return WrongUsage(absl::StrCat(name, " takes one of near, far and any"));
  *phase = static_cast<PhaseChoice>(words->front());
  return absl::OkStatus();
}

absl::Status SetTable(const std::string& name, const std::string& value, int* version) {
  absl::string_view digits = value;
  absl::ConsumePrefix(&digits, "v");
  auto number = ParseNumber(name, digits, 14, 16);
  if (number.ok()) *version = *number;
  return number.status();
}

void AddOptions(Options* options, Sweep* sweep, OptionParser* parser) {
  parser->Flag("--help", &options->help);
  parser->Flag("-h", &options->help);
  parser->Flag("--version", &options->version);
  parser->Flag("--no-pin", &options->pin, false);
  parser->Flag("--no-priority", &options->priority, false);
  parser->Flag("--yield", &options->yield);
  parser->Flag("--keep-disturbed", &options->keep_disturbed);
  parser->Flag("--alone", &options->raw, false);
  parser->Flag("--csv", &options->csv);
  parser->Flag("--json", &options->json);
  parser->Flag("--verbose", &options->verbose);
  parser->Text("--library", &options->plugin);
  parser->Text("--vs", &options->vs);
  parser->Text("--report", &options->report);
  parser->Text("--note", &options->note);
  parser->Number("-n", &options->iterations, 1, 1 << 30);
  parser->Number("-w", &options->warmup, 0, 1 << 30);
  parser->Number("--dev", &options->device, 0, 1000);
  parser->Number("--window", &options->window, 1, 32);
  parser->Number("--samples", &options->samples, 1, 1000);
  parser->Number("--sample-ms", &options->sample_ms, 1, 10000);
  parser->Number("--budget", &options->budget_s, 1, 3600);
  parser->Number("--timeout", &options->timeout_s, 1, 3600);
  parser->Numbers("--cpus", &options->cpus, 0, 4095);
  parser->Value("--mode", [options](const std::string& name, const std::string& value) {
    return SetModes(name, value, &options->modes);
  });
  parser->Value("--phase", [options](const std::string& name, const std::string& value) {
    return SetPhase(name, value, &options->phase);
  });
  parser->Value("--table", [options](const std::string& name, const std::string& value) {
    return SetTable(name, value, &options->api_version);
  });
  AddRoleOptions(options, parser);
  parser->SizeSweep(sweep, kSizeMax, "64M");
}

}  // namespace

absl::StatusOr<Options> ParseRmaOptions(const std::vector<std::string>& arguments) {
  Options options;
  options.program = "rma_bench";
  options.one_sided = options.raw = true;
  options.modes = {Mode::kLatency, Mode::kRate, Mode::kBandwidth};
  Sweep sweep;
  OptionParser parser;
  AddOptions(&options, &sweep, &parser);
  absl::Status status = parser.Parse(arguments);
  if (!status.ok()) return status;
  if (options.help || options.version) return options;
  if (options.plugin.empty()) return WrongUsage("give a library: --library PATH");
  if (!options.raw && !options.vs.empty()) return WrongUsage("--alone and --vs exclude each other");
  if (options.csv && options.json) return WrongUsage("--csv and --json exclude each other");
  if (options.cpus.size() == 1) return WrongUsage("--cpus takes one CPU per process, for example 2,3");
  if (!sweep.begin.has_value() && !sweep.end.has_value()) return options;
  const uint64_t begin = sweep.begin.value_or(8);
  if (begin == 0) return WrongUsage("-b: a put with a signal has at least one byte here");
  auto sizes = SweepSizes(begin, sweep.end.value_or(begin), sweep.factor.value_or(2));
  if (!sizes.ok()) return sizes.status();
  options.sizes = *std::move(sizes);
  return options;
}

}  // namespace bench
}  // namespace tcpx
