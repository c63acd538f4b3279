#include "bench/nccl_bench/children.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/status.h"

namespace tcpx {
namespace nccl_bench {
namespace {

constexpr int64_t kLook = 20 * kMillisecond;
// What a shell says of a program that it can't start.
constexpr int kExitNotStarted = 127;

struct Running {
  const Child* child = nullptr;
  pid_t pid = -1;  // -1: gone
  bool ended_by_us = false;
};

std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (changes.find(text.substr(0, text.find('='))) == changes.end()) merged.push_back(text);
  }
  for (const auto& change : changes) {
    if (!change.second.empty()) merged.push_back(absl::StrCat(change.first, "=", change.second));
  }
  return merged;
}

// Null-terminated, for execve; valid only while `texts` is.
std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(&text[0]);
  pointers.push_back(nullptr);
  return pointers;
}

// All memory is taken before the fork: the process may have threads of the CUDA driver.
pid_t Start(const Child& child) {
  std::vector<std::string> arguments = child.arguments;
  std::vector<std::string> environment = MergedEnvironment(child.environment);
  const std::vector<char*> argv = Pointers(&arguments);
  const std::vector<char*> envp = Pointers(&environment);
  const pid_t parent = getpid();
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It died before the line above.
  execve(argv[0], argv.data(), envp.data());
  _exit(kExitNotStarted);
}

// Empty when it ended as it should.
std::string Failure(const Running& running, int wait_status) {
  if (running.child->killed_on_purpose) {
    const bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL && !running.ended_by_us;
    return killed ? "" : "was to be killed in the middle, but was not";
  }
  if (running.ended_by_us) return "was ended, after the others";
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
  }
  const int code = WEXITSTATUS(wait_status);
  if (code == kExitNotStarted) return absl::StrCat("could not be started: ", running.child->arguments[0]);
  return code == 0 ? "" : absl::StrCat("ended with exit code ", code);
}

class Watch {
 public:
  Watch(const std::vector<Child>& children, const ChildLimits& limits) : limits_(limits) {
    for (const Child& child : children) Add(child);
  }

  int UntilAllEnded() {
    while (Alive() > 0) {
      const timespec pause = {0, kLook};
      nanosleep(&pause, nullptr);
      for (Running& running : running_) Reap(&running);
      if (MonotonicNanos() > deadline_ns_) KillAll();
    }
    return failed_;
  }

 private:
  void Add(const Child& child) {
    Running running;
    running.child = &child;
    running.pid = Start(child);
    if (running.pid < 0) Fail(child, absl::StrCat("fork: ", ErrnoText(errno)));
    running_.push_back(running);
  }

  int Alive() const {
    int alive = 0;
    for (const Running& running : running_) alive += running.pid >= 0 ? 1 : 0;
    return alive;
  }

  void Reap(Running* running) {
    int wait_status = 0;
    if (running->pid < 0 || waitpid(running->pid, &wait_status, WNOHANG) != running->pid) return;
    running->pid = -1;
    const std::string failure = Failure(*running, wait_status);
    if (!failure.empty()) return Fail(*running->child, failure);
    // The others of one killed on purpose have a timeout of their own.
    if (!running->child->killed_on_purpose) Within(limits_.straggler_s);
  }

  void Fail(const Child& child, const std::string& text) {
    fprintf(stderr, "nccl_bench: %s %s\n", child.name.c_str(), text.c_str());
    ++failed_;
    Within(limits_.grace_s);
  }

  void Within(int seconds) {
    const int64_t limit_ns = MonotonicNanos() + seconds * kSecond;
    if (limit_ns < deadline_ns_) deadline_ns_ = limit_ns;
  }

  void KillAll() {
    for (Running& running : running_) {
      if (running.pid < 0) continue;
      running.ended_by_us = true;
      kill(running.pid, SIGKILL);
    }
  }

  const ChildLimits limits_;
  std::vector<Running> running_;
  int64_t deadline_ns_ = INT64_MAX;
  int failed_ = 0;
};

}  // namespace

int RunChildren(const std::vector<Child>& children, const ChildLimits& limits) {
  return Watch(children, limits).UntilAllEnded();
}

}  // namespace nccl_bench
}  // namespace tcpx
