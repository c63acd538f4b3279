#include "bench/net_bench/mixed_sweep.h"

#include <algorithm>

#include "bench/net_bench/mixed_run.h"
#include "bench/net_bench/plan.h"
#include "common/clock.h"

namespace tcpx {
namespace bench {
namespace {

// Longer than a sample of other modes: a 99th percentile wants hundreds of round trips.
constexpr int kSampleFactor = 4;
constexpr uint64_t kFirstLookMessages = 8;
constexpr uint64_t kMessagesMax = 4096;

class Sweep {
 public:
  Sweep(const Options& options, Pair* pair)
      : options_(options), pair_(pair), deadline_ns_(MonotonicNanos() + options.budget_s * kSecond) {
    if (!options.plugin.empty()) sides_.push_back(Implementation::kPlugin);
    if (options.raw) sides_.push_back(Implementation::kRawOne);
  }

  absl::StatusOr<std::vector<MixedRow>> Run() {
    std::vector<MixedRow> rows;
    absl::Status status = Open();
    for (uint64_t bytes : SizesFor(options_, Mode::kMixed)) {
      if (!status.ok()) return status;
      rows.emplace_back();
      rows.back().bytes = std::clamp(bytes, kPingBytesMin, kMixedStreamBytes);
      status = Measure(&rows.back());
    }
    if (!status.ok()) return status;
    Command close;
    close.kind = CommandKind::kCloseLinks;
    status = pair_->Do(close, &ignored_);
    if (!status.ok()) return status;
    return rows;
  }

 private:
  absl::Status Open() {
    Command open;
    open.kind = CommandKind::kOpenLinks;
    open.mode = Mode::kMixed;
    open.connections = 2;
    open.window = options_.window;
    open.bytes = kMixedStreamBytes;
    options_.raw_congestion.copy(open.raw_congestion, sizeof(open.raw_congestion) - 1);
    for (Implementation side : sides_) open.implementations |= 1u << static_cast<uint32_t>(side);
    return pair_->Do(open, &ignored_);
  }

  absl::Status Sample(uint64_t bytes, Implementation side, uint64_t messages, Outcome* outcome) {
    Command command;
    command.kind = CommandKind::kMixed;
    command.mode = Mode::kMixed;
    command.implementation = side;
    command.connections = 2;
    command.window = options_.window;
    command.bytes = kMixedStreamBytes;
    command.ping_bytes = bytes;
    command.yield = options_.yield || pair_->place().usable_cpus < 2;
    command.warmup = std::max<uint64_t>(1, messages / 10);
    command.messages = messages + command.warmup;
    return pair_->Do(command, outcome);
  }

  // How many messages of the stream take the time of a sample, after a first look.
  absl::Status Choose(const MixedRow& row, Implementation side, uint64_t* messages) {
    *messages = static_cast<uint64_t>(options_.iterations);
    if (options_.iterations > 0) return absl::OkStatus();
    Outcome outcome;
    absl::Status status = Sample(row.bytes, side, kFirstLookMessages, &outcome);
    const double wanted = kSampleFactor * options_.sample_ms * 1e6 / std::max(1.0, outcome.nanoseconds_per_message);
    *messages = std::clamp(static_cast<uint64_t>(wanted), kFirstLookMessages, kMessagesMax);
    return status;
  }

  absl::Status Measure(MixedRow* row) {
    uint64_t messages[kMixedSides] = {};
    for (Implementation side : sides_) {
      if (absl::Status status = Choose(*row, side, &messages[SideOf(side)]); !status.ok()) return status;
    }
    for (int sample = 0; sample < options_.samples; ++sample) {
      if (sample > 0 && MonotonicNanos() > deadline_ns_) break;
      // By turns, and the first of each turn changes: a drift of the machine hits both alike.
      std::reverse(sides_.begin(), sides_.end());
      for (Implementation side : sides_) {
        Outcome outcome;
        absl::Status status = Sample(row->bytes, side, messages[SideOf(side)], &outcome);
        if (!status.ok()) return status;
        MixedSamples& kept = row->samples[SideOf(side)];
        kept.p50_us.push_back(outcome.half_round_trip_p50_us);
        kept.p99_us.push_back(outcome.half_round_trip_p99_us);
        kept.stream_gbps.push_back(outcome.gigabytes_per_second);
        kept.pings += outcome.pings;
      }
    }
    return absl::OkStatus();
  }

  static size_t SideOf(Implementation side) { return side == Implementation::kPlugin ? 0 : 1; }

  const Options& options_;
  Pair* const pair_;
  const int64_t deadline_ns_;
  std::vector<Implementation> sides_;
  Outcome ignored_;
};

}  // namespace

absl::StatusOr<std::vector<MixedRow>> RunMixedSweep(const Options& options, Pair* pair) {
  return Sweep(options, pair).Run();
}

}  // namespace bench
}  // namespace tcpx
