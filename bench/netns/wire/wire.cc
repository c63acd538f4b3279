// wire: a network between namespaces whose delay, losses, rates and cuts are given (command_line.h has the words).
//
// Threads: one.
// Errors:  exit code 0 done, 1 a call failed or the relay answered with an error, 2 wrong usage.
#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "bench/netns/wire/command_line.h"
#include "bench/netns/wire/control.h"
#include "bench/netns/wire/profiles.h"
#include "bench/netns/wire/relay.h"
#include "common/fd.h"
#include "common/status.h"

namespace tcpx {
namespace wire {
namespace {

constexpr int kExitUsage = 2;

int Fail(const absl::Status& status) {
  fprintf(stderr, "wire: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kExitUsage : 1;
}

int TellRelay(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) return Fail(absl::InvalidArgumentError("ctl takes SOCKET and a line (--help explains)"));
  const std::string line = absl::StrJoin(arguments.begin() + 2, arguments.end(), " ");
  const absl::StatusOr<std::string> answer = Ask(arguments[1], line);
  if (!answer.ok()) return Fail(answer.status());
  fputs(answer->c_str(), stdout);
  return answer->empty() || absl::StrContains(*answer, "error:") ? 1 : 0;
}

int PrintProfiles() {
  for (const Profile& profile : Profiles()) printf("%s %d %s\n", profile.name, profile.senders, profile.description);
  return 0;
}

int RunRelay(const Options& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const OwnedFd stop(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!stop) return Fail(ErrnoStatus(errno, "signalfd"));
  Relay relay(options);
  if (absl::Status status = relay.Open(); !status.ok()) return Fail(status);
  puts("ready");
  fflush(stdout);
  relay.Run(stop.get());
  fputs(relay.Stats().c_str(), stdout);
  return 0;
}

int Main(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "ctl") return TellRelay(arguments);
  if (arguments.size() == 1 && arguments[0] == "profiles") return PrintProfiles();
  const absl::StatusOr<Options> options = ParseCommandLine(arguments);
  if (!options.ok()) return Fail(options.status());
  if (options->help) {
    fputs(UsageText().c_str(), stdout);
    return 0;
  }
  return RunRelay(*options);
}

}  // namespace
}  // namespace wire
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::wire::Main(std::vector<std::string>(argv + 1, argv + argc)); }
