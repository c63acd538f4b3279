#include "net_socket/stats/thread_times.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/small_file.h"

namespace tcpx {
namespace {

constexpr char kIoPrefix[] = "tcpx-io-";
constexpr char kNccl[] = "nccl";

}  // namespace

// Empty: none of ours.
std::string ThreadWatch::NameOf(int id) const {
  const auto name = ReadSmallFile(absl::StrCat(tasks_, id, "/comm"));
  if (!name.has_value() || !absl::StartsWith(*name, "tcpx-")) return "";
  return std::string(absl::StripAsciiWhitespace(*name));
}

void ThreadWatch::List() {
  for (const int id : NumbersIn(tasks_)) {
    if (threads_.count(id) > 0) continue;
    std::string name = NameOf(id);
    if (!name.empty()) threads_[id].name = std::move(name);
  }
}

bool ThreadWatch::Read(ThreadTimes* thread) {
  const std::string path = absl::StrCat(tasks_, thread->id, "/schedstat");
  const auto text = ReadSmallFile(path);
  ThreadUse now;
  if (!text.has_value() || sscanf(text->c_str(), "%" SCNu64 " %" SCNu64, &now.cpu_ns, &now.no_cpu_ns) != 2) {
    return access(path.c_str(), F_OK) == 0 && thread->cpu_ns > 0;
  }
  if (now.cpu_ns < thread->cpu_ns) {
    End(*thread);
    const std::string name = NameOf(thread->id);
    *thread = {{}, thread->id, name.empty() ? kNccl : name, {}};
  }
  thread->before = {thread->cpu_ns, thread->cpu_ns == 0 ? now.no_cpu_ns : thread->no_cpu_ns};
  thread->cpu_ns = now.cpu_ns;
  thread->no_cpu_ns = now.no_cpu_ns;
  return true;
}

void ThreadWatch::End(const ThreadTimes& thread) {
  if (thread.cpu_ns == 0 && thread.no_cpu_ns == 0) return;
  ThreadTimes& sum = ended_[thread.name];
  sum.name = thread.name;
  sum.cpu_ns += thread.cpu_ns;
  sum.no_cpu_ns += thread.no_cpu_ns;
}

void ThreadWatch::Look(const std::set<int>& callers, int list_every) {
  if (looks_++ % list_every == 0) List();
  for (int caller : callers) {
    ThreadTimes& thread = threads_[caller];
    if (thread.name.empty()) thread.name = kNccl;
  }
  for (auto it = threads_.begin(); it != threads_.end();) {
    it->second.id = it->first;
    if (Read(&it->second)) {
      ++it;
    } else {
      End(it->second);
      it = threads_.erase(it);
    }
  }
}

ThreadUse ThreadWatch::Use(int caller) const {
  if (threads_.count(caller) == 0) return kUseUnknown;
  ThreadUse most;
  for (const auto& [id, thread] : threads_) {
    if (id != caller && !absl::StartsWith(thread.name, kIoPrefix)) continue;
    most.cpu_ns = std::max(most.cpu_ns, thread.cpu_ns - std::min(thread.cpu_ns, thread.before.cpu_ns));
    most.no_cpu_ns = std::max(most.no_cpu_ns, thread.no_cpu_ns - std::min(thread.no_cpu_ns, thread.before.no_cpu_ns));
  }
  return most;
}

}  // namespace tcpx
