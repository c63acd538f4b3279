#include "tools/doctor/command.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/command_line/option_parser.h"

namespace tcpx {
namespace doctor {

namespace {

// What stands in front of the options: nothing, "listen", "hosts FILE", or a host.
absl::StatusOr<std::vector<std::string>> TakeWords(std::vector<std::string> arguments, Command* command) {
  if (arguments.empty() || arguments[0].empty() || arguments[0][0] == '-') return arguments;
  const std::string word = arguments[0];
  arguments.erase(arguments.begin());
  command->mode = word == "listen" ? Mode::kListen : word == "hosts" ? Mode::kHosts : Mode::kBetween;
  command->host = word;
  if (command->mode != Mode::kHosts) return arguments;
  if (arguments.empty() || arguments[0][0] == '-')
    return bench::WrongUsage("hosts needs a FILE with a host on each line");
  command->hosts_file = arguments[0];
  arguments.erase(arguments.begin());
  return arguments;
}

}  // namespace

absl::StatusOr<Command> ParseCommand(const std::vector<std::string>& arguments) {
  Command command;
  const auto options = TakeWords(arguments, &command);
  if (!options.ok()) return options.status();
  bench::OptionParser parser;
  parser.Flag("--help", &command.help);
  parser.Flag("-h", &command.help);
  parser.Flag("--version", &command.version);
  parser.Flag("--json", &command.json);
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
  if (command.mode == Mode::kHosts) {
    parser.Text("--start", &command.start);
    parser.Text("--remote", &command.remote);
  }
  if (command.mode == Mode::kHosts) command.port = 0;  // each host's kernel chooses
  const absl::Status status = parser.Parse(*options);
  if (!status.ok()) return status;
  if (command.mode == Mode::kBetween && command.port == 0) return bench::WrongUsage("--port 0 is for listen alone");
  return command;
}

}  // namespace doctor
}  // namespace tcpx
