#include "tools/doctor/command.h"

#include <stdlib.h>

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/command_line/option_parser.h"

namespace tcpx {
namespace doctor {

namespace {

// What comes before the options: nothing, "listen", "plan", "hosts FILE", "--hosts FILE", "--parameters", or a host.
absl::StatusOr<std::vector<std::string>> TakeWords(std::vector<std::string> arguments, Command* command) {
  if (arguments.empty() || arguments[0].empty()) return arguments;
  const std::string word = arguments[0];
  const bool hosts = word == "hosts" || word == "--hosts";
  if (word[0] == '-' && !hosts && word != "--parameters") return arguments;
  arguments.erase(arguments.begin());
  command->mode = word == "listen"         ? Mode::kListen
                  : word == "plan"         ? Mode::kPlan
                  : hosts                  ? Mode::kHosts
                  : word == "--parameters" ? Mode::kParameters
                                           : Mode::kBetween;
  command->host = word;
  if (command->mode != Mode::kHosts) return arguments;
  if (arguments.empty() || arguments[0][0] == '-')
    return bench::WrongUsage("--hosts needs a FILE with a host on each line");
  command->hosts_file = arguments[0];
  arguments.erase(arguments.begin());
  return arguments;
}

// More than exist.
constexpr int kRanksMax = 256;
constexpr int kChannelsMax = 65536;
// With the most lanes of each, the bytes of so many connections are far below the most of an int64_t.
constexpr int64_t kConnectionsMax = 1000000000;

int64_t ConnectionsOf(const PlanJob& job) {
  if (job.pattern == Pattern::kRing) return job.channels;
  return int64_t{job.ranks} * job.ranks * (job.hosts - 1) * job.channels;
}

absl::Status ParsePlan(const std::vector<std::string>& options, bench::OptionParser* parser, Command* command) {
  PlanJob* const job = &command->job;
  bool has_pattern = false;
  parser->Flag("--quiet", &command->quiet);
  parser->Number("--rtt-us", &command->rtt_us, 1, 10000000);
  parser->Number("--hosts", &job->hosts, 2, 65536);
  parser->Number("--ranks-per-host", &job->ranks, 1, kRanksMax);
  parser->Number("--channels", &job->channels, 1, kChannelsMax);
  parser->Value("--pattern", [job, &has_pattern](const std::string& name, const std::string& value) {
    if (value != "ring" && value != "alltoall") {
      return bench::WrongUsage(absl::StrCat(name, " is ring or alltoall, not '", value, "'"));
    }
    job->pattern = value == "ring" ? Pattern::kRing : Pattern::kAllToAll;
    has_pattern = true;
    return absl::OkStatus();
  });
  const absl::Status status = parser->Parse(options);
  if (!status.ok()) return status;
  const std::pair<bool, const char*> needed[] = {{job->hosts > 0, "--hosts"},
                                                 {job->ranks > 0, "--ranks-per-host"},
                                                 {job->channels > 0, "--channels"},
                                                 {has_pattern, "--pattern"}};
  for (const auto& [given, name] : needed) {
    if (!given && !command->help && !command->version) return bench::WrongUsage(absl::StrCat("plan needs ", name));
  }
  if (ConnectionsOf(*job) > kConnectionsMax) {
    return bench::WrongUsage(absl::StrCat("the job has ", ConnectionsOf(*job), " connections for each host; plan ",
                                          "computes up to ", kConnectionsMax));
  }
  return absl::OkStatus();
}

void AskForHosts(bench::OptionParser* parser, Command* command) {
  parser->Text("--start", &command->start);
  parser->Text("--remote", &command->remote);
  parser->Number("--at-once", &command->at_once, 1, 128);
  command->milliseconds = 200;  // per stream: there are many pairs
  command->port = 0;            // each host's kernel chooses
}

}  // namespace

std::string DefaultStart() {
  const bool slurm = getenv("SLURM_JOB_ID") != nullptr;
  return slurm ? "srun --overlap --nodes=1 --ntasks=1 --nodelist={host}" : "ssh -o BatchMode=yes {host}";
}

absl::StatusOr<Command> ParseCommand(const std::vector<std::string>& arguments) {
  Command command;
  const auto options = TakeWords(arguments, &command);
  if (!options.ok()) return options.status();
  bench::OptionParser parser;
  parser.Flag("--help", &command.help);
  parser.Flag("-h", &command.help);
  parser.Flag("--version", &command.version);
  parser.Flag("--json", &command.json);
  if (command.mode == Mode::kPlan) {
    const absl::Status status = ParsePlan(*options, &parser, &command);
    return status.ok() ? absl::StatusOr<Command>(command) : status;
  }
  if (command.mode == Mode::kParameters) {
    const absl::Status status = parser.Parse(*options);
    return status.ok() ? absl::StatusOr<Command>(command) : status;
  }
  parser.Flag("--quiet", &command.quiet);
  parser.Number("--ranks", &command.ranks, 1, 4096);
  parser.Number("--gpus", &command.gpus, 1, 64);
  parser.Number("--rtt-us", &command.rtt_us, 1, 10000000);
  parser.Text("--plugin", &command.plugin);
  parser.Text("--nccl", &command.nccl);
  if (command.mode != Mode::kHere) parser.Number("--port", &command.port, 0, 65535);
  if (command.mode == Mode::kListen) parser.Flag("--until-eof", &command.until_eof);
  if (command.mode == Mode::kBetween) parser.Flag("--summary", &command.summary);
  if (command.mode == Mode::kBetween || command.mode == Mode::kHosts) {
    parser.Number("--ms", &command.milliseconds, 0, 60000);
  }
  if (command.mode == Mode::kHosts) AskForHosts(&parser, &command);
  const absl::Status status = parser.Parse(*options);
  if (!status.ok()) return status;
  if (command.mode == Mode::kBetween && command.port == 0) return bench::WrongUsage("--port 0 is for listen alone");
  return command;
}

}  // namespace doctor
}  // namespace tcpx
