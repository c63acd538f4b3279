#include "tests/support/processes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "absl/time/clock.h"
#include "tests/support/plugin_log.h"

namespace tcpx {
namespace {

// Waits for a child until `deadline`, then kills it. What was wrong, or empty.
std::string Reap(pid_t pid, absl::Time deadline) {
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got < 0) return absl::StrCat("waitpid: ", strerror(errno));
    if (got == pid && WIFEXITED(status)) {
      return WEXITSTATUS(status) == 0 ? "" : absl::StrCat("exit code ", WEXITSTATUS(status));
    }
    if (got == pid) return absl::StrCat("killed by signal ", WTERMSIG(status));
    if (absl::Now() > deadline) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return "hung";
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
}

pid_t Fork(const std::function<void()>& body) {
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  ClearLog();  // What was said in the tests' own process is not this one's.
  body();
  exit(0);
}

}  // namespace

void QuickExit(int code) {
  (void)syscall(SYS_exit_group, code);
  abort();
}

void Die(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: process %d: %s\n", file, line, static_cast<int>(getpid()), what.c_str());
  QuickExit(1);
}

void Control::Send(const void* data, size_t bytes) {
  TCPX_REQUIRE(send(fd_, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes), "the other process has gone");
}

void Control::Receive(void* data, size_t bytes) {
  TCPX_REQUIRE(recv(fd_, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes), "the other process has gone");
}

void Control::Await(char word) {
  char heard = 0;
  Receive(&heard, 1);
  TCPX_REQUIRE(heard == word, std::string(1, heard), " came, not ", std::string(1, word));
}

bool Control::Rings() const {
  pollfd asked{fd_, POLLIN, 0};
  return poll(&asked, 1, 0) == 1;
}

std::string RunTogether(const Body& one, const Body& other, absl::Duration limit) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return "socketpair failed";
  const Body* bodies[2] = {&one, &other};
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = Fork([&] {
      close(ends[1 - i]);
      Control control(ends[i]);
      (*bodies[i])(control);
    });
  }
  close(ends[0]);
  close(ends[1]);
  const absl::Time deadline = absl::Now() + limit;
  std::string wrong;
  for (int i = 0; i < 2; ++i) {
    const std::string how = Reap(children[i], deadline);
    if (!how.empty()) absl::StrAppend(&wrong, "process ", i + 1, " (", children[i], "): ", how, "; ");
  }
  return wrong;
}

std::string RunAlone(const std::function<void()>& body, absl::Duration limit) {
  return Reap(Fork(body), absl::Now() + limit);
}

std::string RunBeside(const std::vector<std::function<std::string()>>& runs, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  std::vector<pid_t> children;
  for (const auto& run : runs) {
    children.push_back(Fork([&run] {
      const std::string wrong = run();
      TCPX_REQUIRE(wrong.empty(), wrong);
    }));
  }
  std::string wrong;
  for (size_t i = 0; i < children.size(); ++i) {
    const std::string how = Reap(children[i], deadline);
    if (!how.empty()) absl::StrAppend(&wrong, "run ", i + 1, ": ", how, "; ");
  }
  return wrong;
}

int ExitCodeOf(int pid, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (absl::Now() > deadline) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return -1;
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tcpx
