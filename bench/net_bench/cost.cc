#include "bench/net_bench/cost.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/loop.h"
#include "bench/net_bench/plugin_link.h"
#include "common/clock.h"

namespace tcpx {
namespace bench {
namespace {

constexpr size_t kTrafficBytes = 4096;
constexpr uint64_t kTrafficMessages = 4;
constexpr int kTrafficWindow = 2;
// Lets threads that are about to sleep do so.
constexpr int64_t kSettle = 200 * kMillisecond;
constexpr int64_t kNap = 500 * kMillisecond;

// The number after "NAME:" in /proc/self/status.
int64_t StatusField(absl::string_view name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, name)) continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    int64_t value = 0;
    const std::vector<absl::string_view> words =
        absl::StrSplit(parts.second, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (!words.empty() && absl::SimpleAtoi(words[0], &value)) return value;
  }
  return 0;
}

void CountDescriptors(Holdings* holdings) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory.get())) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(entry->d_name[0]))) continue;
    ++holdings->descriptors;
    int listening = 0;
    socklen_t length = sizeof(listening);
    if (getsockopt(atoi(entry->d_name), SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0) {
      holdings->listening_sockets += listening;
    }
  }
  --holdings->descriptors;  // The one that reads the directory.
}

double Seconds(const timeval& value) {
  return static_cast<double>(value.tv_sec) + static_cast<double>(value.tv_usec) / 1e6;
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

double SecondsSince(int64_t start_ns) { return static_cast<double>(MonotonicNanos() - start_ns) / 1e9; }

void Sleep(int64_t nanoseconds, Position* position) {
  while (nanoseconds > 0) {
    const timespec nap = {0, static_cast<long>(std::min(nanoseconds, kNap))};
    nanosleep(&nap, nullptr);
    nanoseconds -= kNap;
    position->Tick();
  }
}

class CostRun {
 public:
  CostRun(const Command& command, int rank, PluginHost* host, Control* control, Position* position)
      : command_(command), rank_(rank), host_(host), control_(control), position_(position) {}

  absl::StatusOr<CostResult> Run();

 private:
  absl::Status MakeBuffers();
  absl::Status Connect();
  absl::Status Exchange();
  absl::Status Idle();

  const Command& command_;
  const int rank_;
  PluginHost* const host_;
  Control* const control_;
  Position* const position_;
  CostResult result_;
  std::unique_ptr<SlotRing> send_slots_;
  std::unique_ptr<SlotRing> receive_slots_;
  std::unique_ptr<PluginLink> link_;
};

absl::StatusOr<CostResult> CostRun::Run() {
  absl::Status status = MakeBuffers();
  result_.before = CurrentHoldings();
  if (status.ok()) status = Connect();
  if (status.ok()) status = Exchange();
  if (status.ok()) status = Idle();
  if (!status.ok()) return status;
  const int64_t start = MonotonicNanos();
  status = link_->Close();
  if (!status.ok()) return status;
  result_.close_seconds = SecondsSince(start);
  return result_;
}

absl::Status CostRun::MakeBuffers() {
  SlotRing::Shape shape;
  shape.regions = command_.connections;
  shape.slots = kTrafficWindow;
  shape.bytes_max = kTrafficBytes;
  for (std::unique_ptr<SlotRing>* ring : {&send_slots_, &receive_slots_}) {
    absl::StatusOr<std::unique_ptr<SlotRing>> made = SlotRing::Create(shape);
    if (!made.ok()) return made.status();
    *ring = std::move(*made);
  }
  return absl::OkStatus();
}

absl::Status CostRun::Connect() {
  const int64_t start = MonotonicNanos();
  PluginLinkShape shape;
  shape.connections = command_.connections;
  shape.sends = rank_ == 0;
  shape.receives = rank_ == 1;
  absl::StatusOr<std::unique_ptr<PluginLink>> link =
      PluginLink::Create(shape, host_, control_, send_slots_.get(), receive_slots_.get(), position_);
  if (!link.ok()) return link.status();
  link_ = std::move(*link);
  result_.setup_seconds = SecondsSince(start);
  return absl::OkStatus();
}

absl::Status CostRun::Exchange() {
  LoopOrder order;
  order.connections = command_.connections;
  order.sends = rank_ == 0;
  order.receives = rank_ == 1;
  order.window = kTrafficWindow;
  order.messages = kTrafficMessages;
  order.bytes = kTrafficBytes;
  order.check = true;
  order.yield = true;
  order.seed = command_.seed;
  order.rank = static_cast<uint32_t>(rank_);
  order.peer_rank = static_cast<uint32_t>(1 - rank_);
  position_->bytes.store(kTrafficBytes, std::memory_order_relaxed);
  position_->Enter(Stage::kTransfer);
  LoopResult ignored;
  return Loop(order, link_.get(), send_slots_.get(), receive_slots_.get(), position_).Run(&ignored);
}

absl::Status CostRun::Idle() {
  position_->Enter(Stage::kPeer);
  if (absl::Status status = control_->Meet(rank_ == 0); !status.ok()) return status;
  position_->Enter(Stage::kIdle);
  Sleep(kSettle, position_);
  result_.after = CurrentHoldings();
  if (command_.kind != CommandKind::kIdle) return absl::OkStatus();
  const int64_t start = MonotonicNanos();
  const double cpu_before = CpuSeconds();
  Sleep(command_.seconds * kSecond, position_);
  result_.idle_cpu_seconds = CpuSeconds() - cpu_before;
  result_.idle_seconds = SecondsSince(start);
  return absl::OkStatus();
}

}  // namespace

Holdings CurrentHoldings() {
  Holdings holdings;
  holdings.threads = static_cast<int32_t>(StatusField("Threads"));
  holdings.resident_bytes = StatusField("VmRSS") * 1024;
  CountDescriptors(&holdings);
  return holdings;
}

absl::StatusOr<CostResult> MeasureCost(const Command& command, int rank, PluginHost* host, Control* control,
                                       Position* position) {
  return CostRun(command, rank, host, control, position).Run();
}

}  // namespace bench
}  // namespace tcpx
