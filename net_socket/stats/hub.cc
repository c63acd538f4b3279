#include "net_socket/stats/hub.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "common/this_host.h"
#include "common/thread.h"
#include "net_socket/stats/stats_file.h"
#include "net_socket/stats/stats_socket.h"

namespace tcpx {
namespace {

int64_t ThreadCpuNs() { return NanosOf(CLOCK_THREAD_CPUTIME_ID); }
double UnixNow() { return static_cast<double>(NanosOf(CLOCK_REALTIME)) * 1e-9; }

ProcessNumbers ThisProcess() {
  ProcessNumbers process;
  process.host = HostName();
  process.pid = getpid();
  process.mark = ProcessMark();
  process.uid = static_cast<int>(geteuid());
  const char* const job = getenv("SLURM_JOB_ID");
  process.slurm_job_id = job != nullptr && *job != '\0' ? job : "unknown";
  process.started_unix = UnixNow();
  return process;
}

void WarnOfMemory() {
  try {
    TCPX_WARN("no memory for statistics: one update is left out; transfers go on");
  } catch (const std::bad_alloc&) {  // There is none to say so either.
  }
}

}  // namespace

// The file and the socket, while the thread runs.
class StatsHub::Outputs {
 public:
  explicit Outputs(StatsHub* hub) : hub_(hub) {
    const Options& options = hub->options_;
    if (!options.stats_dir.empty()) {
      file_ = std::make_unique<StatsFile>(options.stats_dir, hub->process_, &hub->warned_file_);
    }
    if (options.stats_socket.empty()) return;
    auto socket = StatsSocket::Open(options.stats_socket);
    if (socket.ok()) {
      socket_ = *std::move(socket);
      TCPX_INFO("TCPX_STATS_SOCKET: statistics are served at %s", socket_->name());
    } else if (!std::exchange(hub->warned_socket_, true)) {
      TCPX_WARN("TCPX_STATS_SOCKET: %s; statistics have no socket; transfers go on",
                std::string(socket.status().message()));
    }
  }

  void Looked() { document_ = nullptr; }

  void Write() {
    if (file_ == nullptr) return;
    const bool lanes = hub_->options_.stats_lanes;
    file_->Write(PrometheusText(hub_->Take(lanes), lanes));
    file_->RemoveStale();
  }

  // Until `until_ns`, or something happened. False: to be stopped.
  bool Wait(int64_t until_ns) {
    std::vector<pollfd> polls{{hub_->stop_.get(), POLLIN, 0}};
    int64_t now = MonotonicNanos();
    if (socket_ != nullptr) until_ns = std::min(until_ns, socket_->AddPolls(now, &polls));
    const int64_t left_ms = (std::max<int64_t>(until_ns - now, 0) + kMillisecond - 1) / kMillisecond;
    if (poll(polls.data(), polls.size(), static_cast<int>(left_ms)) < 0) return true;
    if (polls[0].revents != 0) return false;
    if (socket_ != nullptr) socket_->Serve(polls, MonotonicNanos(), [this] { return Document(); });
    return true;
  }

 private:
  // However many ask, it is made once for each look: once a second at most.
  std::shared_ptr<const std::string> Document() {
    if (document_ == nullptr) document_ = std::make_shared<const std::string>(SnapshotJson(hub_->Take(true)));
    return document_;
  }

  StatsHub* const hub_;
  std::unique_ptr<StatsFile> file_;
  std::unique_ptr<StatsSocket> socket_;
  std::shared_ptr<const std::string> document_;
};

StatsHub::StatsHub(const Options& options, ReadRma read_rma)
    : options_(options), read_rma_(std::move(read_rma)), process_(ThisProcess()) {}

void StatsHub::Start() {
  MutexLock lock(start_mutex_);
  if (users_++ > 0) return;
  stop_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // A thread that can't be stopped is not begun.
  auto thread = stop_.valid() ? StartThread("the thread of the statistics", [this] { Run(); })
                              : absl::StatusOr<std::thread>(ErrnoStatus(errno, "eventfd"));
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else if (!std::exchange(warned_, true)) {
    TCPX_WARN("%s; there are no statistics; transfers go on", thread.status().message());
  }
}

void StatsHub::Stop() {
  MutexLock lock(start_mutex_);
  if (--users_ > 0 || !thread_.joinable()) return;
  (void)eventfd_write(stop_.get(), 1);
  thread_.join();
  stop_.reset();
}

// Where memory is short the job may go on: what throws here would end it.
void StatsHub::Run() {
  pthread_setname_np(pthread_self(), "tcpx-stats");
  std::unique_ptr<Outputs> outputs;
  StatsPace pace;
  int64_t cpu_ns = ThreadCpuNs();
  bool warned = false;
  for (bool goes_on = true; goes_on;) {
    try {
      if (outputs == nullptr) outputs = std::make_unique<Outputs>(this);
      TakeTurn(&pace, outputs.get());
      NoteCost(&cpu_ns);
      goes_on = outputs->Wait(pace.next_ns());
    } catch (const std::bad_alloc&) {
      if (!std::exchange(warned, true)) WarnOfMemory();
      pollfd stop{stop_.get(), POLLIN, 0};
      goes_on = poll(&stop, 1, static_cast<int>(StatsPace::kLookEveryNs / kMillisecond)) <= 0;
    }
  }
}

void StatsHub::TakeTurn(StatsPace* pace, Outputs* outputs) {
  const int64_t now = MonotonicNanos();
  if (pace->LookDue(now)) {
    const int64_t before_ns = ThreadCpuNs();
    pace->Looked(now, 0);  // Also where it fails.
    LookAtAll();
    pace->Looked(now, ThreadCpuNs() - before_ns);
    outputs->Looked();
  }
  if (!pace->WriteDue(now)) return;
  pace->Wrote(now);
  outputs->Write();
}

void StatsHub::NoteCost(int64_t* cpu_ns) {
  const int64_t before_ns = std::exchange(*cpu_ns, ThreadCpuNs());
  MutexLock lock(mutex_);
  kept_.collection_ns += static_cast<uint64_t>(*cpu_ns - before_ns);
}

std::shared_ptr<StatsEntry> StatsHub::Join(Link<NumbersSource> source, const Read& read) {
  ConnectionNumbers first;
  read(&first);
  MutexLock lock(mutex_);
  // Other hosts than the first kPeersMax have one name.
  if (peers_.size() < Totals::kPeersMax) peers_.insert(first.peer_host);
  if (peers_.count(first.peer_host) == 0) first.peer_host = Totals::kOther;
  auto entry = std::make_shared<StatsEntry>(std::move(source), std::move(first));
  entries_.insert(entry);
  return entry;
}

void StatsHub::Leave(const std::shared_ptr<StatsEntry>& entry, const Read& read) {
  MutexLock lock(mutex_);
  if (entries_.erase(entry) == 0) return;
  MutexLock entry_lock(entry->mutex_);
  entry->left_ = true;
  read(&entry->numbers_);
  Attribute(kUseUnknown, &entry->numbers_);
  kept_.totals.Add(entry->numbers_, false);
}

void StatsHub::LookAtAll() {
  std::vector<std::shared_ptr<StatsEntry>> entries;
  ThreadWatch threads;
  {
    MutexLock lock(mutex_);
    entries.assign(entries_.begin(), entries_.end());
    threads = threads_;
  }
  std::set<int> callers;
  for (auto& entry : entries) {
    MutexLock lock(entry->mutex_);
    if (entry->numbers_.caller != 0) callers.insert(entry->numbers_.caller);
  }
  threads.Look(callers);
  for (auto& entry : entries) {
    entry->source_.With([&](NumbersSource* source) {
      MutexLock lock(entry->mutex_);
      if (entry->left_) return;
      source->ReadNumbers(&entry->numbers_);
      Attribute(threads.Use(entry->numbers_.caller), &entry->numbers_);
    });
  }
  MutexLock lock(mutex_);
  threads_ = std::move(threads);
  kept_.now_ns = MonotonicNanos();
  kept_.now_unix = UnixNow();
  ++kept_.looks;
}

Snapshot StatsHub::Take(bool connections) {
  MutexLock lock(mutex_);
  Snapshot snapshot = kept_;
  snapshot.process = process_;
  for (const auto& [id, thread] : threads_.threads()) snapshot.threads.push_back(thread);
  for (const auto& [name, thread] : threads_.ended()) snapshot.threads.push_back(thread);
  if (read_rma_ != nullptr) snapshot.rma = read_rma_();
  for (auto& entry : entries_) {
    MutexLock entry_lock(entry->mutex_);
    snapshot.totals.Add(entry->numbers_, true);
    if (connections) snapshot.connections.push_back(entry->numbers_);
  }
  return snapshot;
}

}  // namespace tcpx
