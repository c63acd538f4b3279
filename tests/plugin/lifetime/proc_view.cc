#include "tests/plugin/lifetime/proc_view.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

std::vector<int> NumbersIn(const char* folder) {
  std::vector<int> numbers;
  DIR* dir = opendir(folder);
  if (dir == nullptr) return numbers;
  while (dirent* entry = readdir(dir)) {
    const int number = entry->d_name[0] == '.' ? dirfd(dir) : atoi(entry->d_name);
    if (number != dirfd(dir)) numbers.push_back(number);
  }
  closedir(dir);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::string> Mappings() {
  std::vector<std::string> lines;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) lines.push_back(line);
  return lines;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

int ThreadCountAtRest() {
  std::thread([] {}).join();
  int threads = ThreadCount();
  // The joined one may still be listed.
  for (int i = 0; i < 20; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
    threads = std::min(threads, ThreadCount());
  }
  return threads;
}

// By the folder's links, so that it works where no descriptor can be opened.
int ThreadCount() {
  struct stat task;
  return stat("/proc/self/task", &task) == 0 ? static_cast<int>(task.st_nlink) - 2 : -1;
}

std::vector<std::string> OpenDescriptors() {
  std::vector<std::string> lines;
  for (int fd : NumbersIn("/proc/self/fd")) {
    char target[256];
    const ssize_t length = readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), target, sizeof(target));
    if (length > 0) lines.push_back(absl::StrCat(fd, " ", std::string(target, static_cast<size_t>(length))));
  }
  return lines;
}

int MappingCount() { return static_cast<int>(Mappings().size()); }

std::vector<std::string> PluginMappings() {
  std::vector<std::string> lines;
  for (const std::string& line : Mappings()) {
    const bool ours = line.find("libnccl-net-tcpx") != std::string::npos || line.find("io_uring") != std::string::npos;
    if (ours) lines.push_back(line);
  }
  return lines;
}

size_t HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

double CpuSeconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return Seconds(used.ru_utime) + Seconds(used.ru_stime);
}

std::string Joined(const std::vector<std::string>& lines) { return absl::StrJoin(lines, "\n"); }

bool SettlesAtThreads(int threads) {
  const Deadline deadline(30);
  const int emulators = getenv("TCPX_TEST_EMULATOR") == nullptr ? 0 : 1;
  while (ThreadCount() < threads || ThreadCount() > threads + emulators) {
    if (deadline.Over()) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

}  // namespace tcpx
