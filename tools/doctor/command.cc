#include "tools/doctor/command.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/command_line/option_parser.h"

namespace tcpx {
namespace doctor {

absl::StatusOr<Command> ParseCommand(const std::vector<std::string>& arguments) {
  Command command;
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
  const absl::Status status = parser.Parse(arguments);
  if (!status.ok()) return status;
  return command;
}

}  // namespace doctor
}  // namespace tcpx
