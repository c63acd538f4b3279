#include "tools/doctor/hosts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/counted.h"
#include "common/escape.h"
#include "common/fd.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int kExitUsage = 2;
constexpr size_t kHostsMax = 256;
constexpr int64_t kStartNs = 60 * kSecond;
constexpr int64_t kPairNs = 300 * kSecond;
constexpr int kStreams = 6;  // 1, 4 and 16 flows in both directions

bool IsPlain(absl::string_view word) {
  for (const char c : word) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) &&
        absl::string_view("._:-%").find(c) == absl::string_view::npos) {
      return false;
    }
  }
  return !word.empty() && word[0] != '-';
}

// A command of the shell, with its input and output.
class Program {
 public:
  explicit Program(const std::string& command) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0) return;
    input_.reset(in[1]);
    const OwnedFd its_input(in[0]);
    if (pipe2(out, O_CLOEXEC) != 0) return;
    output_.reset(out[0]);
    const OwnedFd its_output(out[1]);
    child_ = fork();
    if (child_ != 0) return;
    setpgid(0, 0);
    dup2(its_input.get(), STDIN_FILENO);
    dup2(its_output.get(), STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }

  // Its input ends, and a listening doctor ends with it; what does not end is killed.
  ~Program() {
    input_.reset();
    output_.reset();
    for (int64_t until = MonotonicNanos() + 10 * kSecond; child_ > 0 && MonotonicNanos() < until; usleep(10000)) {
      if (waitpid(child_, nullptr, WNOHANG) != 0) return;
    }
    if (child_ <= 0) return;
    kill(-child_, SIGTERM);
    waitpid(child_, nullptr, 0);
  }

  // Up to the end of a line, or of everything.
  std::string Read(bool line, int64_t patience_ns) {
    const int64_t until = MonotonicNanos() + patience_ns;
    std::string text;
    while (MonotonicNanos() < until && text.size() < (1 << 20)) {
      pollfd poll_fd = {output_.get(), POLLIN, 0};
      if (poll(&poll_fd, 1, 1000) <= 0) continue;
      char byte;
      if (read(output_.get(), &byte, 1) != 1) break;
      text += byte;
      if (line && byte == '\n') break;
    }
    return text;
  }
  void EndInput() { input_.reset(); }

 private:
  OwnedFd input_;
  OwnedFd output_;
  pid_t child_ = -1;
};

std::string StartOn(const Command& command, const HostLine& host, const std::string& arguments) {
  const std::string start = command.start.empty() ? DefaultStart() : command.start;
  return absl::StrCat(absl::StrReplaceAll(start, {{"{host}", host.name}}), " ", command.remote, " ", arguments);
}

struct Listening {
  std::unique_ptr<Program> program;
  int port = 0;
};

// All at once, as each start takes a while.
std::vector<Listening> StartListeners(const Command& command, const std::vector<HostLine>& hosts, Report* report) {
  std::vector<Listening> all(hosts.size());
  const std::string arguments = absl::StrCat("listen --until-eof --port ", command.port);
  for (size_t i = 0; i < hosts.size(); ++i) {
    all[i].program = std::make_unique<Program>(StartOn(command, hosts[i], arguments));
  }
  for (size_t i = 0; i < hosts.size(); ++i) {
    const std::string line = all[i].program->Read(true, kStartNs);
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" ;\n"));
    if (words.size() > 3 && words[0] == "listening" && absl::SimpleAtoi(words[3], &all[i].port)) continue;
    report->Problem("host",
                    absl::StrCat(hosts[i].name, ": no doctor could be started there",
                                 line.empty() ? "" : absl::StrCat(" (", absl::StripAsciiWhitespace(line), ")")),
                    absl::StrCat("try: ", StartOn(command, hosts[i], "--version")));
  }
  return all;
}

using Round = std::vector<std::pair<int, int>>;

// All pairs of a round at once.
void AskRound(const Command& command, const std::vector<HostLine>& hosts, const std::vector<Listening>& listening,
              const Round& round, std::vector<Cell>* cells) {
  std::vector<std::unique_ptr<Program>> programs;
  for (const auto& [from, to] : round) {
    const std::string arguments = absl::StrCat(hosts[static_cast<size_t>(to)].address, " --summary --port ",
                                               listening[static_cast<size_t>(to)].port, " --ms ", command.milliseconds);
    programs.push_back(std::make_unique<Program>(StartOn(command, hosts[static_cast<size_t>(from)], arguments)));
    programs.back()->EndInput();
  }
  const int64_t until = MonotonicNanos() + kPairNs;
  for (size_t i = 0; i < round.size(); ++i) {
    const auto [from, to] = round[i];
    cells->push_back(ParseSummary(from, to, programs[i]->Read(false, std::max(until - MonotonicNanos(), kSecond))));
    if (command.json) continue;
    fprintf(stderr, "%s and %s: %s\n", hosts[static_cast<size_t>(from)].name.c_str(),
            hosts[static_cast<size_t>(to)].name.c_str(), cells->back().reached ? "asked" : "not reached");
  }
}

// Without the pairs of hosts where no doctor listens.
std::vector<Round> RoundsToAsk(const Command& command, const std::vector<Listening>& listening) {
  const int hosts = static_cast<int>(listening.size());
  std::vector<Round> rounds;
  for (const Round& round : PairRounds(hosts, command.at_once > 0 ? command.at_once : hosts)) {
    Round asked;
    for (const auto& pair : round) {
      const bool both =
          listening[static_cast<size_t>(pair.first)].port != 0 && listening[static_cast<size_t>(pair.second)].port != 0;
      if (both) asked.push_back(pair);
    }
    if (!asked.empty()) rounds.push_back(asked);
  }
  return rounds;
}

std::vector<Cell> AskPairs(const Command& command, const std::vector<HostLine>& hosts,
                           const std::vector<Listening>& listening) {
  const std::vector<Round> rounds = RoundsToAsk(command, listening);
  size_t pairs = 0;
  for (const Round& round : rounds) pairs += round.size();
  if (!command.json && pairs > 0) {
    const double seconds = command.milliseconds == 0 ? 2 : 4 + kStreams * command.milliseconds / 1000.0;
    fprintf(stderr, "%s in %s: about %.0f s\n", Counted(static_cast<int64_t>(pairs), "pair").c_str(),
            Counted(static_cast<int64_t>(rounds.size()), "round").c_str(),
            std::max(1.0, static_cast<double>(rounds.size()) * seconds));
  }
  std::vector<Cell> cells;
  for (const Round& round : rounds) AskRound(command, hosts, listening, round, &cells);
  std::sort(cells.begin(), cells.end(),
            [](const Cell& a, const Cell& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
  return cells;
}

std::string CellJson(const std::vector<HostLine>& hosts, const Cell& cell) {
  return absl::StrCat("{\"from\": ", JsonText(hosts[static_cast<size_t>(cell.from)].name),
                      ", \"to\": ", JsonText(hosts[static_cast<size_t>(cell.to)].name),
                      ", \"reached\": ", cell.reached ? "true" : "false", ", \"rtt_us\": ", cell.rtt_us,
                      ", \"mtu\": ", cell.mtu, ", \"out_mbps\": ", cell.out_mbps, ", \"in_mbps\": ", cell.in_mbps, "}");
}

std::string CellsJson(const std::vector<HostLine>& hosts, const std::vector<Cell>& cells) {
  std::string text = "\"pairs\": [";
  for (const Cell& cell : cells) absl::StrAppend(&text, &cell == &cells[0] ? "\n  " : ",\n  ", CellJson(hosts, cell));
  return text + "]";
}

int WrongFile(const std::string& text) {
  fprintf(stderr, "tcpx_doctor: %s\n", text.c_str());
  return kExitUsage;
}

}  // namespace

absl::StatusOr<std::vector<HostLine>> ParseHosts(const std::string& text) {
  std::vector<HostLine> hosts;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = line.substr(0, line.find('#'));
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    if (words.size() > 2 || !IsPlain(words[0]) || !IsPlain(words.back())) {
      return absl::InvalidArgumentError(absl::StrCat("'", line, "' is not NAME [ADDRESS]"));
    }
    hosts.push_back({words[0], words.back()});
  }
  if (hosts.size() < 2) return absl::InvalidArgumentError("it takes two hosts at least, one on each line");
  if (hosts.size() > kHostsMax) return absl::InvalidArgumentError(absl::StrCat("more than ", kHostsMax, " hosts"));
  return hosts;
}

int ExamineHosts(const Command& command) {
  std::ifstream file(command.hosts_file);
  if (!file) return WrongFile(command.hosts_file + " can't be read");
  std::ostringstream text;
  text << file.rdbuf();
  const auto hosts = ParseHosts(text.str());
  if (!hosts.ok()) return WrongFile(absl::StrCat(command.hosts_file, ": ", hosts.status().message()));
  Report report;
  std::vector<Cell> cells;
  {
    const std::vector<Listening> listening = StartListeners(command, *hosts, &report);
    cells = AskPairs(command, *hosts, listening);
  }
  JudgeMatrix(*hosts, cells, &report);
  if (command.json) {
    fputs(ReportJson(report, CellsJson(*hosts, cells)).c_str(), stdout);
  } else {
    fputs(absl::StrCat(MatrixText(*hosts, cells), ReportText(report, command.quiet)).c_str(), stdout);
  }
  return report.ExitCode();
}

}  // namespace doctor
}  // namespace tcpx
