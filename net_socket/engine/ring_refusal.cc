#include "net_socket/engine/ring_refusal.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/small_file.h"
#include "common/status.h"

namespace tcpx {
namespace {

// About twice one of ours (uring_engine.cc).
constexpr rlim_t kRingBytes = 64 << 10;
constexpr useconds_t kRetryUs = 5000;

std::atomic<bool> waited_in_vain{false};

rlim_t Memlock() {
  rlimit limit{};
  (void)getrlimit(RLIMIT_MEMLOCK, &limit);  // Can't fail: the resource exists.
  return limit.rlim_cur;
}

std::string Advice(int err) {
  if (err == EPERM || err == EACCES) {
    const std::string disabled = ReadSmallFile("/proc/sys/kernel/io_uring_disabled").value_or("");
    return absl::StrCat("; sysctl kernel.io_uring_disabled is '", absl::StripAsciiWhitespace(disabled),
                        "': if that is 0 or missing, the pod's seccomp profile forbids io_uring_setup");
  }
  if (err == ENOSYS) return "; the kernel has no io_uring, or the pod's seccomp profile hides it";
  if (err == ENOMEM) {
    return absl::StrCat("; memory for a ring was refused: raise the limit of locked memory, memlock, which is ",
                        Memlock() == RLIM_INFINITY ? "unlimited" : absl::StrCat(Memlock() >> 10, " KiB"),
                        " for all processes of a user (ulimit -l, LimitMEMLOCK=, docker --ulimit memlock=-1; "
                        "rings count up to Linux 5.11 and from 6.14 on), or the container's memory");
  }
  return "";
}

}  // namespace

int OpenPatiently(const std::function<int()>& open, int64_t patience_ns) {
  const int64_t until = MonotonicNanos() + patience_ns;
  int result = open();
  const bool patient = !waited_in_vain.load(std::memory_order_relaxed) && Memlock() >= kRingBytes;
  while (result == -ENOMEM && patient && MonotonicNanos() < until) {
    usleep(kRetryUs);
    result = open();
  }
  if (result >= 0 || (result == -ENOMEM && patient)) waited_in_vain.store(result < 0, std::memory_order_relaxed);
  return result;
}

absl::Status RingRefusal(int err) {
  return absl::Status(ErrnoStatus(err, "io_uring_setup").code(),
                      absl::StrCat("io_uring_setup: ", ErrnoText(err), Advice(err)));
}

}  // namespace tcpx
