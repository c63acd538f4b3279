// io_uring or epoll, and the memory that rings need.
#include "net_socket/engine/engine.h"

#include <errno.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/counted.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr const char* kRungs[] = {"the best one, as of Linux 6.1", "as of Linux 6.0", "as of Linux 5.19",
                                  "without flags, as of Linux 5.11"};
constexpr int kRingsMax = 512;

std::string LimitText(int resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : absl::StrCat(limit.rlim_cur >> 10, " KiB");
}

// 2: a filter is in force (SECCOMP_MODE_FILTER).
bool HasSeccompFilter(const Patient& patient) {
  const std::vector<std::string> words = ReadWords(patient, "/proc/self/status");
  const auto key = std::find(words.begin(), words.end(), "Seccomp:");
  return key != words.end() && key + 1 != words.end() && *(key + 1) == "2";
}

struct Cause {
  std::string text;
  std::string fix;
};

// The probe's errno leaves several causes; what can be read here tells which.
Cause CauseOf(const Patient& patient, const std::string& reason) {
  const std::string profile =
      "let the pod's seccomp profile (type Localhost) allow io_uring_setup, io_uring_enter and io_uring_register";
  const int64_t disabled = ReadNumber(patient, "/proc/sys/kernel/io_uring_disabled", 0);
  if (absl::StrContains(reason, "io_uring_disabled")) {  // EPERM, EACCES
    if (disabled > 0) {
      return {absl::StrCat("the sysctl kernel.io_uring_disabled is ", disabled),
              "sysctl -w kernel.io_uring_disabled=0"};
    }
    return {HasSeccompFilter(patient) ? "a seccomp filter forbids it" : "a security module forbids it", profile};
  }
  if (absl::StrContains(reason, "no io_uring")) {  // ENOSYS
    if (HasSeccompFilter(patient)) return {"a seccomp filter hides it, or the kernel has none", profile};
    return {"the kernel has none", "a kernel of 5.11 or later with CONFIG_IO_URING"};
  }
  if (absl::StrContains(reason, "memory for a ring")) {
    return {absl::StrCat("the limit of locked memory is ", LimitText(RLIMIT_MEMLOCK)),
            "ulimit -l unlimited (LimitMEMLOCK=infinity, docker --ulimit memlock=-1)"};
  }
  return {"", "a kernel of 5.11 or later"};
}

// `refusal` is empty where io_uring works.
void ReportUring(const Patient& patient, const std::string& refusal, Report* report) {
  if (refusal.empty()) {
    const int rung = UringRung();
    report->Ok("engine", absl::StrCat("io_uring is usable",
                                      rung < 0 ? "" : absl::StrFormat(", rung %d (%s)", rung, kRungs[rung])));
    return;
  }
  const bool asked = patient.options.engine == EngineChoice::kIoUring;
  const Cause cause = CauseOf(patient, refusal);
  report->Add(asked ? Grade::kProblem : Grade::kNote, "engine",
              absl::StrCat("io_uring is not usable", cause.text.empty() ? "" : ": ", cause.text, "; epoll is used (",
                           refusal, ")"),
              cause.fix);
}

// Each progress thread of each rank has a ring, of one user's memory.
void CheckRings(const Patient& patient, Report* report) {
  const int ranks = std::max(1, patient.cpu_facts.ranks_on_host);
  const int wanted = std::min(kRingsMax, ranks * patient.threads.threads);
  std::vector<std::unique_ptr<Engine>> rings;
  std::string reason;
  while (static_cast<int>(rings.size()) < wanted && reason.empty()) {
    auto ring = MakeUringEngine();
    if (ring.ok()) {
      rings.push_back(*std::move(ring));
    } else {
      reason = std::string(ring.status().message());
    }
  }
  const std::string locked = absl::StrCat("locked memory ", LimitText(RLIMIT_MEMLOCK));
  if (reason.empty()) {
    report->Ok("memory",
               absl::StrCat(locked, ": room for the ", Counted(wanted, "ring"), " of ", Counted(ranks, "rank")));
    return;
  }
  report->Problem("memory",
                  absl::StrCat(locked, ": room for ", rings.size(), " of the ", Counted(wanted, "ring"), " of ",
                               Counted(ranks, "rank"), " (", reason, ")"),
                  "ulimit -l unlimited (LimitMEMLOCK=infinity, docker --ulimit memlock=-1)");
}

}  // namespace

// Whether io_uring works is asked once: other processes' rings come and go, and with them the answer.
void CheckEngine(const Patient& patient, Report* report) {
  const EngineChoice wanted = patient.options.engine;
  std::string reason;
  EngineChoice engine = ProbeEngine(wanted == EngineChoice::kEpoll ? EngineChoice::kAuto : wanted, &reason);
  ReportUring(patient, engine == EngineChoice::kIoUring ? "" : reason, report);
  if (wanted == EngineChoice::kEpoll) engine = ProbeEngine(wanted, &reason);
  if (patient.threads.caller_driven()) {
    report->Ok("engine", "not used in caller-driven mode");
  } else {
    report->Ok("engine", absl::StrCat(engine == EngineChoice::kIoUring ? "io_uring" : "epoll", " (", reason, ")"));
  }
  if (engine == EngineChoice::kIoUring && patient.threads.threads > 0) {
    CheckRings(patient, report);
  } else {
    report->Ok("memory", absl::StrCat("locked memory ", LimitText(RLIMIT_MEMLOCK), "; no ring needs it"));
  }
}

}  // namespace doctor
}  // namespace tcpx
