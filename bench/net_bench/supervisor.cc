#include "bench/net_bench/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/status.h"

namespace tcpx {
namespace bench {
namespace {

constexpr int64_t kLook = 10 * kMillisecond;
// What the others get to notice by themselves that one has failed.
constexpr int64_t kGrace = 2 * kSecond;

void Pause() {
  const timespec pause = {0, kLook};
  nanosleep(&pause, nullptr);
}

[[noreturn]] void RunChild(SharedPage* page, int rank, pid_t parent, const std::function<absl::Status()>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It died before the line above.
  const absl::Status status = body();
  if (!status.ok()) page->SetError(rank, status.message());
  page->positions[rank].Enter(Stage::kExit);
  exit(status.ok() ? 0 : 1);
}

}  // namespace

Supervisor::~Supervisor() {
  KillRunning();
  while (AnyRunning()) {
    Pause();
    Reap();
  }
}

absl::Status Supervisor::Fork(int rank, const std::function<absl::Status()>& body) {
  fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, "fork");
  if (pid == 0) RunChild(page_, rank, parent, body);
  Worker worker;
  worker.pid = pid;
  worker.rank = rank;
  worker.running = true;
  workers_.push_back(worker);
  return absl::OkStatus();
}

int Supervisor::Watch() {
  int64_t progress_ns = MonotonicNanos();
  int64_t failed_ns = 0;
  while (AnyRunning()) {
    Pause();
    Reap();
    const int64_t now = MonotonicNanos();
    if (MadeProgress()) progress_ns = now;
    if (AnyRunning() && now - progress_ns > timeout_s_ * kSecond) {
      ReportHang();
      KillRunning();
      progress_ns = now;
    }
    if (AnyFailed() && failed_ns == 0) failed_ns = now;
    if (failed_ns != 0 && now - failed_ns > kGrace) KillRunning();
  }
  PrintFailures();
  return AnyFailed() ? 1 : 0;
}

void Supervisor::Reap() {
  for (Worker& worker : workers_) {
    int wait_status = 0;
    if (worker.running && waitpid(worker.pid, &wait_status, WNOHANG) == worker.pid) Conclude(&worker, wait_status);
  }
}

void Supervisor::Conclude(Worker* worker, int wait_status) {
  worker->running = false;
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return;
  if (!worker->failure.empty()) return;  // Killed by us, reported already.
  const std::string place = page_->positions[worker->rank].Describe();
  const char* error = page_->errors[worker->rank];
  worker->failed_ns = page_->error_ns[worker->rank];
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    worker->failure =
        absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), "), last seen in: ", place);
  } else if (error[0] != '\0') {
    worker->failure = error;
  } else {
    worker->failure = absl::StrCat("ended with exit code ", WEXITSTATUS(wait_status), ", last seen in: ", place);
  }
}

bool Supervisor::MadeProgress() {
  bool any = false;
  for (Worker& worker : workers_) {
    const uint64_t ticks = page_->positions[worker.rank].ticks.load(std::memory_order_relaxed);
    any |= ticks != worker.ticks;
    worker.ticks = ticks;
  }
  return any;
}

void Supervisor::ReportHang() {
  for (Worker& worker : workers_) {
    if (!worker.running) continue;
    worker.failure =
        absl::StrCat("made no progress for ", timeout_s_, " s, in: ", page_->positions[worker.rank].Describe());
  }
}

void Supervisor::KillRunning() {
  for (Worker& worker : workers_) {
    if (!worker.running) continue;
    if (worker.failure.empty()) {
      worker.failure = absl::StrCat("was ended, in: ", page_->positions[worker.rank].Describe());
      worker.failed_ns = MonotonicNanos();
    }
    kill(worker.pid, SIGKILL);
  }
}

bool Supervisor::AnyRunning() const {
  for (const Worker& worker : workers_) {
    if (worker.running) return true;
  }
  return false;
}

bool Supervisor::AnyFailed() const {
  for (const Worker& worker : workers_) {
    if (!worker.failure.empty()) return true;
  }
  return false;
}

// In the order of failing: the later ones are mostly consequences of the first.
void Supervisor::PrintFailures() {
  std::sort(workers_.begin(), workers_.end(),
            [](const Worker& a, const Worker& b) { return a.failed_ns < b.failed_ns; });
  for (const Worker& worker : workers_) {
    if (!worker.failure.empty()) fprintf(stderr, "net_bench: rank %d: %s\n", worker.rank, worker.failure.c_str());
  }
}

}  // namespace bench
}  // namespace tcpx
