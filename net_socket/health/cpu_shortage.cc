#include "net_socket/health/cpu_shortage.h"

#include <dirent.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/small_file.h"

namespace tcpx {
namespace {

// A process of more threads than that is not looked at thread by thread.
constexpr size_t kThreadsMax = 512;
// What is less is told of as none.
constexpr uint64_t kShortPercent = 50;
// Of the time in which it wanted a CPU.
constexpr uint64_t kWantedPercent = 70;

}  // namespace

std::map<int, CpuShortage::Times> CpuShortage::Read() const {
  std::map<int, Times> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(tasks_.c_str()), &closedir);
  if (folder == nullptr) return threads;
  while (const dirent* entry = readdir(folder.get())) {
    const int id = atoi(entry->d_name);
    if (id <= 0 || threads.size() >= kThreadsMax) continue;
    const auto text = ReadSmallFile(absl::StrCat(tasks_, id, "/schedstat"));
    Times times;
    if (!text.has_value()) continue;
    if (sscanf(text->c_str(), "%" SCNu64 " %" SCNu64, &times.cpu_ns, &times.waited_ns) == 2) threads[id] = times;
  }
  return threads;
}

int CpuShortage::Percent(int64_t now_ns, int64_t every_ns) {
  if (looked_ns_ != 0 && now_ns - looked_ns_ < every_ns) return percent_;
  std::map<int, Times> threads = Read();
  const auto elapsed_ns = static_cast<uint64_t>(std::max<int64_t>(now_ns - looked_ns_, 1));
  uint64_t most = 0;
  for (const auto& [id, times] : threads) {
    const auto before = threads_.find(id);
    if (looked_ns_ == 0 || before == threads_.end() || times.cpu_ns < before->second.cpu_ns) continue;
    const uint64_t ran_ns = times.cpu_ns - before->second.cpu_ns;
    const uint64_t waited_ns = times.waited_ns - std::min(before->second.waited_ns, times.waited_ns);
    if ((ran_ns + waited_ns) * 100 < elapsed_ns * kWantedPercent || ran_ns > waited_ns) continue;
    most = std::max(most, std::min<uint64_t>(waited_ns * 100 / elapsed_ns, 100));
  }
  percent_ = most >= kShortPercent ? static_cast<int>(most) : 0;
  if (percent_ == 0) told_ = false;
  looked_ns_ = now_ns;
  threads_ = std::move(threads);
  return percent_;
}

}  // namespace tcpx
