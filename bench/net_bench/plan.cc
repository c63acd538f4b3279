#include "bench/net_bench/plan.h"

#include <algorithm>
#include <utility>

namespace tcpx {
namespace bench {
namespace {

// Small enough for the first look at a cell to be short, large enough to say how fast it is.
constexpr uint64_t kFirstLookMessages = 100;
constexpr uint64_t kFirstLookBytes = 16 << 20;
// Where other processes take the CPU, shorter samples have a better chance between two slices; up to an eighth.
constexpr int kShrinkMax = 3;
// Bounds of one sample whatever its cell's speed.
constexpr uint64_t kSampleMessagesMax = 4000000;
constexpr uint64_t kSampleBytesMax = 256 << 20;

uint64_t AtMostBytes(uint64_t messages, uint64_t bytes_max, uint64_t bytes) {
  return bytes == 0 ? messages : std::min(messages, std::max<uint64_t>(1, bytes_max / bytes));
}

// A few windows, so that filling and draining them does not dominate.
uint64_t FewestMessages(const Options& options, uint64_t bytes) {
  return std::max<uint64_t>(2, AtMostBytes(4 * static_cast<uint64_t>(options.window), kSampleBytesMax, bytes));
}

// As many as NCCL has under way to one peer.
constexpr int kRateWindow = 32;

bool Better(Mode mode, double a, double b) { return LargerIsBetter(mode) ? a > b : a < b; }

double MedianIn(const Cell& cell, Phase phase) { return Quantile(cell.In(phase).value, 0.5); }

void Place(const Cell& cell, Mode mode, Phase phase, Row* row) {
  if (cell.implementation == Implementation::kPlugin) {
    row->plugin = &cell;
    return;
  }
  if (cell.implementation == Implementation::kVs) {
    row->vs = &cell;
    return;
  }
  if (mode == Mode::kLatency && cell.implementation == Implementation::kRawEachWay) {
    row->each_way = &cell;
    return;
  }
  if (row->floor == nullptr || Better(mode, MedianIn(cell, phase), MedianIn(*row->floor, phase))) row->floor = &cell;
}

void CompareWith(Phase phase, const Cell* plugin, const Cell* other, double* ratio, bool* enough) {
  if (plugin == nullptr || other == nullptr) return;
  const double base = MedianIn(*other, phase);
  if (base > 0) *ratio = MedianIn(*plugin, phase) / base;
  *enough = plugin->In(phase).value.size() >= kVerdictSamples && other->In(phase).value.size() >= kVerdictSamples;
}

void Compare(Phase phase, Row* row) {
  CompareWith(phase, row->plugin, row->floor, &row->ratio, &row->enough);
  CompareWith(phase, row->plugin, row->vs, &row->vs_ratio, &row->vs_enough);
}

// The floors of one-sided transfers.
std::vector<Implementation> OneSidedFloorFor(const Options& options, Mode mode) {
  if (mode != Mode::kBandwidth) return {Implementation::kRawOne};
  if (options.send_receive) return {Implementation::kSendReceive};
  return {};
}

}  // namespace

const char* UnitOf(Mode mode) {
  if (mode == Mode::kLatency) return "us";
  return mode == Mode::kRate ? "Mmsg/s" : "GB/s";
}

std::vector<uint64_t> SizesFor(const Options& options, Mode mode) {
  if (!options.sizes.empty()) return options.sizes;
  constexpr uint64_t kK = 1024;
  constexpr uint64_t kM = 1024 * kK;
  if (options.one_sided) {
    if (mode == Mode::kLatency) return {8};
    if (mode == Mode::kRate) return {8, 64, 256, kK};
    return {64 * kK, 256 * kK, kM, 4 * kM, 16 * kM};
  }
  switch (mode) {
    case Mode::kLatency:
      return {8, 128, kK, 4 * kK, 16 * kK, 64 * kK, 256 * kK, kM};
    case Mode::kRate:
      return {8, 64, 512, 4 * kK};
    case Mode::kMany:
      return {kK, 16 * kK};
    case Mode::kBidirectional:
      return {16 * kK, 128 * kK, 512 * kK, kM};
    case Mode::kMixed:
      return {8, 16 * kK};
    case Mode::kAllreduce:
      return {64 * kK, kM, 16 * kM, 64 * kM};
    default:
      return {kK, 16 * kK, 64 * kK, 128 * kK, 512 * kK, kM, 4 * kM};
  }
}

int WindowFor(const Options& options, Mode mode) {
  return options.one_sided && mode == Mode::kRate ? kRateWindow : options.window;
}

std::vector<int> ConnectionsFor(const Options& options, Mode mode) {
  if (!options.connections.empty()) return options.connections;
  if (mode == Mode::kMany) return {4, 64, 256};
  if (mode == Mode::kIdle) return {100};
  if (mode == Mode::kSetup) return {1000};
  return {1};
}

std::vector<Implementation> FloorFor(Mode mode, uint64_t bytes, int connections) {
  if (bytes == 0) return {};  // A bare socket has no empty message.
  if (mode == Mode::kLatency || mode == Mode::kBidirectional) {
    return {Implementation::kRawOne, Implementation::kRawEachWay};
  }
  if (connections == 1 && bytes >= kSeveralSocketsFrom) {
    return {Implementation::kRawOne, Implementation::kRawTwo, Implementation::kRawFour};
  }
  return {Implementation::kRawOne};
}

std::vector<Cell> CellsFor(const Options& options, Mode mode, int connections) {
  std::vector<Cell> cells;
  const auto add = [&](uint64_t bytes, Implementation implementation) {
    Cell cell;
    cell.bytes = bytes;
    cell.connections = connections;
    cell.implementation = implementation;
    cells.push_back(std::move(cell));
  };
  for (uint64_t bytes : SizesFor(options, mode)) {
    if (!options.plugin.empty()) add(bytes, Implementation::kPlugin);
    if (!options.vs.empty()) add(bytes, Implementation::kVs);
    if (!options.raw) continue;
    const auto floor = options.one_sided ? OneSidedFloorFor(options, mode) : FloorFor(mode, bytes, connections);
    for (Implementation implementation : floor) add(bytes, implementation);
  }
  return cells;
}

uint64_t MessagesFor(const Options& options, const Cell& cell) {
  if (options.iterations > 0) return static_cast<uint64_t>(options.iterations);
  const uint64_t fewest = FewestMessages(options, cell.bytes);
  if (cell.nanoseconds_per_message <= 0) {
    const uint64_t all = AtMostBytes(kFirstLookMessages, kFirstLookBytes, cell.bytes);
    return std::max(fewest, all / static_cast<uint64_t>(cell.connections));
  }
  const double shrink = 1 << std::min(cell.disturbed, kShrinkMax);
  const double sample_ns = options.sample_ms * 1e6 / shrink;
  const double all = std::min(sample_ns / cell.nanoseconds_per_message, static_cast<double>(kSampleMessagesMax));
  return std::max(fewest, static_cast<uint64_t>(all / cell.connections));
}

uint64_t WarmupFor(const Options& options, const Cell& cell) {
  if (options.warmup >= 0) return static_cast<uint64_t>(options.warmup);
  return std::max<uint64_t>(2, MessagesFor(options, cell) / 10);
}

Phase MainPhase(const std::vector<Cell>& cells, PhaseChoice choice) {
  std::vector<Phase> order = {Phase::kNear, Phase::kBetween, Phase::kFar, Phase::kUnchecked};
  if (choice == PhaseChoice::kFar) order = {Phase::kFar, Phase::kBetween, Phase::kNear, Phase::kUnchecked};
  for (Phase phase : order) {
    for (const Cell& cell : cells) {
      if (!cell.In(phase).value.empty()) return phase;
    }
  }
  return Phase::kUnchecked;
}

std::vector<Row> RowsFor(const ModeReport& report, Phase phase) {
  std::vector<Row> rows;
  for (const Cell& cell : report.cells) {
    if (cell.In(phase).value.empty()) continue;
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& r) { return r.bytes == cell.bytes && r.connections == cell.connections; });
    if (row == rows.end()) {
      Row fresh;
      fresh.bytes = cell.bytes;
      fresh.connections = cell.connections;
      row = rows.insert(rows.end(), fresh);
    }
    Place(cell, report.mode, phase, &*row);
  }
  for (Row& row : rows) Compare(phase, &row);
  return rows;
}

}  // namespace bench
}  // namespace tcpx
