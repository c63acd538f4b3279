#include "bench/net_bench/allreduce.h"

#include <sched.h>
#include <stdio.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/configuration.h"
#include "bench/net_bench/cpus.h"
#include "bench/net_bench/plan.h"
#include "bench/net_bench/plugin_host.h"
#include "bench/net_bench/plugin_link.h"
#include "bench/net_bench/plugin_log.h"
#include "bench/net_bench/report.h"
#include "bench/net_bench/report_page.h"
#include "bench/net_bench/ring_order.h"
#include "bench/net_bench/ring_runner.h"
#include "bench/net_bench/stats.h"
#include "common/clock.h"

namespace tcpx {
namespace bench {
namespace {

// One slice: what NCCL's ring sends at once in the Simple protocol with default settings.
constexpr size_t kSliceBytes = 1 << 20;
constexpr int64_t kTimePerSize = kSecond;
constexpr int kRepeatsMin = 5;
constexpr int kRepeatsMax = 200;

// Small integers: every sum of them is exact in a float, in any order.
float InputOf(int rank, size_t element) {
  return static_cast<float>((element * 31 + static_cast<size_t>(rank) * 17) % 64) - 32;
}

class AllreduceRank {
 public:
  AllreduceRank(const Options& options, const WorkerPlace& place, const RingControls& controls)
      : options_(options), place_(place), controls_(controls), position_(&place.page->positions[place.rank]) {}

  absl::Status Run();

 private:
  absl::Status Connect();
  absl::Status MakeBuffers();
  absl::Status RunSizes();
  absl::StatusOr<AllreduceRow> RunSize(uint64_t bytes);
  absl::StatusOr<double> RunOnce(const RingOrder& order, size_t elements, uint64_t* wrong);
  // All ranks leave at the same time.
  void Barrier();
  // What rank 0 has, everywhere; what all have, summed up at rank 0.
  absl::Status Share(uint64_t* value);
  absl::Status SumUp(uint64_t* value);
  float* Data() const { return reinterpret_cast<float*>(data_->Slot(0, 0)); }
  absl::Status Close();

  const Options& options_;
  const WorkerPlace place_;
  const RingControls controls_;
  Position* const position_;
  std::unique_ptr<SlotRing> data_;
  std::unique_ptr<SlotRing> slots_;
  std::unique_ptr<PluginHost> host_;
  std::unique_ptr<PluginLink> link_;
  uint32_t barriers_ = 0;
  std::vector<AllreduceRow> rows_;
};

absl::Status AllreduceRank::Run() {
  ConfigurePluginLog(absl::StrCat("rank ", place_.rank), options_.verbose);
  absl::StatusOr<std::unique_ptr<PluginHost>> host = PluginHost::Open(options_, position_);
  if (!host.ok()) return host.status();
  host_ = std::move(*host);
  absl::Status status = MakeBuffers();
  if (status.ok()) status = Connect();
  if (place_.cpu >= 0) RunOn({place_.cpu});
  if (status.ok()) status = RunSizes();
  if (status.ok()) status = Close();
  return status;
}

absl::Status AllreduceRank::MakeBuffers() {
  const std::vector<uint64_t> sizes = SizesFor(options_, Mode::kAllreduce);
  SlotRing::Shape data;
  data.bytes_max = *std::max_element(sizes.begin(), sizes.end());
  SlotRing::Shape slots;
  slots.slots = options_.window;
  slots.bytes_max = kSliceBytes;
  for (const auto& part : {std::make_pair(&data_, data), std::make_pair(&slots_, slots)}) {
    absl::StatusOr<std::unique_ptr<SlotRing>> made = SlotRing::Create(part.second);
    if (!made.ok()) return made.status();
    *part.first = std::move(*made);
  }
  return absl::OkStatus();
}

absl::Status AllreduceRank::Connect() {
  absl::StatusOr<std::unique_ptr<PluginLink>> link = PluginLink::CreateBetween(
      PluginLinkShape(), host_.get(), controls_.previous, controls_.next, data_.get(), slots_.get(), position_);
  if (!link.ok()) return link.status();
  link_ = std::move(*link);
  return absl::OkStatus();
}

absl::Status AllreduceRank::RunSizes() {
  uint64_t wrong = 0;
  for (uint64_t bytes : SizesFor(options_, Mode::kAllreduce)) {
    absl::StatusOr<AllreduceRow> row = RunSize(bytes / sizeof(float) * sizeof(float));
    if (!row.ok()) return row.status();
    wrong += row->wrong;
    rows_.push_back(*row);
  }
  if (place_.rank != 0) return absl::OkStatus();
  RunReport report;
  report.configuration = Configuration(options_, place_, host_->description(), "", "");
  report.allreduce = rows_;
  const std::string text = options_.csv    ? CsvReport(report)
                           : options_.json ? JsonReport(report)
                                           : absl::StrCat(TableHeader(report), AllreduceTable(rows_));
  fputs(text.c_str(), stdout);
  if (absl::Status status = WriteReport(options_, report); !status.ok()) return status;
  return wrong == 0 ? absl::OkStatus() : absl::DataLossError(absl::StrCat(wrong, " elements have a wrong sum"));
}

absl::StatusOr<AllreduceRow> AllreduceRank::RunSize(uint64_t bytes) {
  RingOrder::Shape shape;
  shape.rank = place_.rank;
  shape.ranks = options_.ranks;
  shape.elements = bytes / sizeof(float);
  shape.slice_elements = kSliceBytes / sizeof(float);
  const RingOrder order(shape);
  position_->bytes.store(bytes, std::memory_order_relaxed);
  uint64_t wrong = 0;
  absl::StatusOr<double> first = RunOnce(order, shape.elements, &wrong);  // The warm-up.
  if (!first.ok()) return first.status();
  const double fitting = static_cast<double>(kTimePerSize) / 1000 / std::max(1.0, *first);
  uint64_t repeats = options_.iterations > 0 ? static_cast<uint64_t>(options_.iterations)
                                             : static_cast<uint64_t>(std::min<double>(fitting, kRepeatsMax));
  if (options_.iterations == 0) repeats = std::max<uint64_t>(repeats, kRepeatsMin);
  if (absl::Status status = Share(&repeats); !status.ok()) return status;
  std::vector<double> times;
  for (uint64_t i = 0; i < repeats; ++i) {
    absl::StatusOr<double> time = RunOnce(order, shape.elements, &wrong);
    if (!time.ok()) return time.status();
    times.push_back(*time);
  }
  if (absl::Status status = SumUp(&wrong); !status.ok()) return status;
  const Summary summary = Summarize(times);
  AllreduceRow row;
  row.bytes = bytes;
  row.ranks = options_.ranks;
  row.repeats = static_cast<int>(repeats);
  row.microseconds = summary.median;
  row.lower_us = summary.lower_quartile;
  row.upper_us = summary.upper_quartile;
  row.algorithm_gbps = static_cast<double>(bytes) / 1000 / std::max(summary.median, 1e-3);
  row.bus_gbps = row.algorithm_gbps * 2 * (options_.ranks - 1) / options_.ranks;
  row.wrong = wrong;
  return row;
}

// Microseconds from the common start until the last rank is done.
absl::StatusOr<double> AllreduceRank::RunOnce(const RingOrder& order, size_t elements, uint64_t* wrong) {
  float* data = Data();
  for (size_t i = 0; i < elements; ++i) data[i] = InputOf(place_.rank, i);
  RingRunner::Parts parts;
  parts.send = link_->sends()[0];
  parts.receive = link_->receives()[0];
  parts.data = data;
  parts.slots = slots_.get();
  parts.window = options_.window;
  parts.yield = place_.usable_cpus < options_.ranks;
  parts.position = position_;
  RingRunner runner(order, parts);
  position_->Enter(Stage::kPeer);
  Barrier();
  position_->Enter(Stage::kTransfer);
  const int64_t start = MonotonicNanos();
  if (absl::Status status = runner.Run(); !status.ok()) return status;
  position_->Enter(Stage::kPeer);
  Barrier();
  const int64_t elapsed = MonotonicNanos() - start;
  for (size_t i = 0; i < elements; ++i) {
    float want = 0;
    for (int rank = 0; rank < options_.ranks; ++rank) want += InputOf(rank, i);
    if (data[i] != want) ++*wrong;
  }
  position_->Tick();
  return static_cast<double>(elapsed) / 1000;
}

void AllreduceRank::Barrier() {
  std::atomic<uint32_t>& arrived = place_.page->arrived;
  const uint32_t target = ++barriers_ * static_cast<uint32_t>(options_.ranks);
  arrived.fetch_add(1, std::memory_order_acq_rel);
  // Signed difference: the counter may wrap.
  while (static_cast<int32_t>(arrived.load(std::memory_order_acquire) - target) < 0) {
    if (place_.usable_cpus < options_.ranks) sched_yield();
  }
}

absl::Status AllreduceRank::Share(uint64_t* value) {
  if (place_.rank > 0) {
    if (absl::Status status = controls_.previous->Receive(value); !status.ok()) return status;
  }
  return place_.rank + 1 < options_.ranks ? controls_.next->Send(*value) : absl::OkStatus();
}

absl::Status AllreduceRank::SumUp(uint64_t* value) {
  uint64_t sum = 0;
  if (place_.rank == 0) {
    if (absl::Status status = controls_.next->Send(*value); !status.ok()) return status;
    return controls_.previous->Receive(value);
  }
  if (absl::Status status = controls_.previous->Receive(&sum); !status.ok()) return status;
  return controls_.next->Send(sum + *value);
}

absl::Status AllreduceRank::Close() {
  absl::Status status = link_->Close();
  Barrier();
  if (status.ok()) status = host_->Close();
  return status;
}

}  // namespace

absl::Status RunAllreduceRank(const Options& options, const WorkerPlace& place, const RingControls& controls) {
  AllreduceRank rank(options, place, controls);
  const absl::Status status = rank.Run();
  // Before the connections close, see Recorded in worker.cc.
  if (!status.ok()) place.page->SetError(place.rank, status.message());
  return status;
}

}  // namespace bench
}  // namespace tcpx
