#include "net_socket/stats/thread_times.h"

#include <dirent.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/small_file.h"

namespace tcpx {
namespace {

constexpr char kTasks[] = "/proc/self/task/";
constexpr char kIoPrefix[] = "tcpx-io-";

bool ReadTimes(ThreadTimes* thread) {
  const auto text = ReadSmallFile(absl::StrCat(kTasks, thread->id, "/schedstat"));
  uint64_t cpu = 0;
  uint64_t no_cpu = 0;
  if (!text.has_value() || sscanf(text->c_str(), "%" SCNu64 " %" SCNu64, &cpu, &no_cpu) != 2) return false;
  thread->no_cpu_before_ns = thread->cpu_ns == 0 ? no_cpu : thread->no_cpu_ns;
  thread->cpu_ns = cpu;
  thread->no_cpu_ns = no_cpu;
  return true;
}

}  // namespace

void ThreadWatch::List() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kTasks), &closedir);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder.get())) {
    const int id = atoi(entry->d_name);
    if (id <= 0 || threads_.count(id) > 0) continue;
    const auto name = ReadSmallFile(absl::StrCat(kTasks, id, "/comm"));
    if (!name.has_value() || !absl::StartsWith(*name, "tcpx-")) continue;
    threads_[id].name = std::string(absl::StripAsciiWhitespace(*name));
  }
}

void ThreadWatch::Look(const std::set<int>& callers, int list_every) {
  if (looks_++ % list_every == 0) List();
  for (int caller : callers) {
    ThreadTimes& thread = threads_[caller];
    if (thread.name.empty()) thread.name = "nccl";
  }
  for (auto it = threads_.begin(); it != threads_.end();) {
    it->second.id = it->first;
    it = ReadTimes(&it->second) ? std::next(it) : threads_.erase(it);
  }
}

uint64_t ThreadWatch::NoCpuNs(int caller) const {
  uint64_t most = 0;
  for (const auto& [id, thread] : threads_) {
    if (id != caller && !absl::StartsWith(thread.name, kIoPrefix)) continue;
    most = std::max(most, thread.no_cpu_ns - std::min(thread.no_cpu_ns, thread.no_cpu_before_ns));
  }
  return most;
}

}  // namespace tcpx
