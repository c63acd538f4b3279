#include "tests/plugin/lifetime/modes.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ostream>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

constexpr Mode kDrivers[] = {
    {"caller", "0", "auto", 0, "auto"},
    {"uring", "2", "io_uring", 0, "auto"},
    {"epoll", "2", "epoll", 0, "auto"},
};

std::vector<Mode> WithLanes(const std::vector<int>& lanes) {
  std::vector<Mode> modes;
  for (const Mode& driver : kDrivers) {
    for (int count : lanes) {
      modes.push_back(driver);
      modes.back().lanes = count;
    }
  }
  modes.push_back({"uring_zerocopy", "2", "io_uring", 4, "on"});
  return modes;
}

}  // namespace

void Mode::Apply() const {
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("TCPX_THREADS", threads, 1);
  setenv("TCPX_ENGINE", engine, 1);
  setenv("TCPX_ZEROCOPY", zero_copy, 1);
  setenv("TCPX_LANES", absl::StrCat(lanes).c_str(), 1);
}

std::string Mode::MissingHere() const {
  if (strcmp(engine, "io_uring") != 0) return "";
  io_uring_params params{};
  const long fd = syscall(SYS_io_uring_setup, 1, &params);
  if (fd < 0) return absl::StrCat("this machine refuses io_uring_setup: ", strerror(errno));
  close(static_cast<int>(fd));
  return "";
}

std::vector<Mode> AllModes() { return WithLanes({1, 4}); }

std::vector<Mode> ModesWithBulkLanes() { return WithLanes({4}); }

std::string NameOf(const Mode& mode) {
  return absl::StrCat(mode.name, "_", mode.lanes, mode.lanes == 1 ? "lane" : "lanes");
}

void PrintTo(const Mode& mode, std::ostream* out) { *out << NameOf(mode); }

}  // namespace tcpx
