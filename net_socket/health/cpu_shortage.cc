#include "net_socket/health/cpu_shortage.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/small_file.h"
#include "net_socket/health/tuning.h"

namespace tcpx {

bool CpuShortage::ReadThread(int id, std::map<int, Times>* threads) const {
  const auto text = ReadSmallFile(absl::StrCat(tasks_, id, "/schedstat"));
  Times times;
  if (!text.has_value()) return false;
  const char* const format = "%" SCNu64 " %" SCNu64 " %" SCNu64;
  if (sscanf(text->c_str(), format, &times.cpu_ns, &times.waited_ns, &times.slices) != 3) return true;
  // The state comes after the name, which may have anything in it.
  const std::string state = ReadSmallFile(absl::StrCat(tasks_, id, "/stat")).value_or("");
  const size_t name_end = state.rfind(')');
  times.ready = name_end != std::string::npos && state.compare(name_end, 3, ") R") == 0;
  (*threads)[id] = times;
  return true;
}

std::map<int, CpuShortage::Times> CpuShortage::Read() {
  std::map<int, Times> threads;
  if (looks_++ % tuning::kCpuNamesKeptLooks == 0) {
    ours_.clear();
    for (const int id : NumbersIn(tasks_, tuning::kCpuThreadsMax)) {
      // The reactor and the progress pool name theirs so. What else the application runs is its own affair.
      const auto name = ReadSmallFile(absl::StrCat(tasks_, id, "/comm"));
      if (name.has_value() && absl::StartsWith(*name, "tcpx-")) ours_.insert(id);
    }
  }
  for (const int id : ours_) (void)ReadThread(id, &threads);
  for (auto at = callers_.begin(); at != callers_.end();) at = ReadThread(*at, &threads) ? ++at : callers_.erase(at);
  return threads;
}

int CpuShortage::Percent(int64_t now_ns, int64_t every_ns) {
  if (looked_ns_ != 0 && now_ns - looked_ns_ < every_ns) return percent_;
  const bool first = looked_ns_ == 0 || now_ns - looked_ns_ > tuning::kCpuOldNs;
  if (first) looks_ = 0;
  std::map<int, Times> threads = Read();
  const auto elapsed_ns = static_cast<uint64_t>(std::max<int64_t>(now_ns - looked_ns_, 1));
  uint64_t most = 0;
  for (const auto& [id, times] : threads) {
    const auto before = threads_.find(id);
    if (first || before == threads_.end() || times.cpu_ns < before->second.cpu_ns) continue;
    const uint64_t ran_ns = times.cpu_ns - before->second.cpu_ns;
    const bool still_waits = times.ready && before->second.ready && times.slices == before->second.slices;
    const uint64_t waited_ns = still_waits ? elapsed_ns - std::min(ran_ns, elapsed_ns)
                                           : times.waited_ns - std::min(before->second.waited_ns, times.waited_ns);
    if ((ran_ns + waited_ns) * 100 < elapsed_ns * tuning::kCpuWantedPercent || ran_ns > waited_ns) continue;
    most = std::max(most, std::min<uint64_t>(waited_ns * 100 / elapsed_ns, 100));
  }
  percent_ = most >= tuning::kCpuShortPercent ? static_cast<int>(most) : 0;
  if (percent_ == 0) logged_ = false;
  looked_ns_ = now_ns;
  threads_ = std::move(threads);
  return percent_;
}

}  // namespace tcpx
