#include "bench/net_bench/flag_sweep.h"

#include <algorithm>

#include "common/clock.h"

namespace tcpx {
namespace bench {
namespace {

constexpr uint64_t kMessagesMin = 20;
constexpr uint64_t kMessagesMax = 100000;

class Sweep {
 public:
  Sweep(const Options& options, Pair* pair)
      : options_(options), pair_(pair), deadline_ns_(MonotonicNanos() + options.budget_s * kSecond) {}

  absl::StatusOr<std::vector<FlagRow>> Run() {
    const std::vector<FlagCell> cells = FlagCellsFor(options_);
    Command open;
    open.kind = CommandKind::kOpenLinks;
    open.window = options_.window;
    open.implementations = 1u << static_cast<uint32_t>(Implementation::kPlugin);
    for (const FlagCell& cell : cells) open.bytes = std::max(open.bytes, cell.bytes);
    Outcome outcome;
    absl::Status status = pair_->Do(open, &outcome);
    std::vector<FlagRow> rows;
    for (const FlagCell& cell : cells) {
      if (!status.ok()) return status;
      FlagRow row;
      row.kind = cell.kind;
      row.bytes = cell.bytes;
      status = Measure(&row);
      rows.push_back(row);
    }
    if (!status.ok()) return status;
    Command close;
    close.kind = CommandKind::kCloseLinks;
    status = pair_->Do(close, &outcome);
    if (!status.ok()) return status;
    return rows;
  }

 private:
  absl::Status Sample(const FlagRow& row, bool hint, bool ping, uint64_t messages, Outcome* outcome) {
    Command command;
    command.kind = CommandKind::kFlags;
    command.mode = ping ? Mode::kLatency : Mode::kRate;
    command.window = options_.window;
    command.bytes = row.bytes;
    command.line_kind = row.kind;
    command.optional_recv = hint;
    command.warmup = messages / 10;
    command.messages = messages + command.warmup;
    command.seed = next_flag_;
    next_flag_ += command.messages;
    return pair_->Do(command, outcome);
  }

  // How many messages take the time of a sample, after a first look.
  absl::Status Choose(const FlagRow& row, bool ping, uint64_t* messages) {
    *messages = static_cast<uint64_t>(options_.iterations);
    if (options_.iterations > 0) return absl::OkStatus();
    Outcome outcome;
    absl::Status status = Sample(row, true, ping, kMessagesMin, &outcome);
    const double wanted = options_.sample_ms * 1e6 / std::max(1.0, outcome.nanoseconds_per_message);
    *messages = std::clamp(static_cast<uint64_t>(wanted), kMessagesMin, kMessagesMax);
    return status;
  }

  absl::Status Measure(FlagRow* row) {
    for (const bool ping : {true, false}) {
      uint64_t messages = 0;
      if (absl::Status status = Choose(*row, ping, &messages); !status.ok()) return status;
      for (int sample = 0; sample < options_.samples; ++sample) {
        if (sample > 0 && MonotonicNanos() > deadline_ns_) break;
        // By turns, and the first of each turn changes: a drift of the machine hits both alike.
        for (const bool hint : {sample % 2 == 0, sample % 2 != 0}) {
          Outcome outcome;
          if (absl::Status status = Sample(*row, hint, ping, messages, &outcome); !status.ok()) return status;
          FlagSamples& kept = row->samples[hint];
          if (ping) {
            kept.p50_us.push_back(outcome.half_round_trip_p50_us);
            kept.p99_us.push_back(outcome.half_round_trip_p99_us);
            kept.tests_per_answered.push_back(outcome.tests_per_message);
          } else {
            kept.messages_per_second.push_back(1e9 / outcome.nanoseconds_per_message);
            kept.tests_per_message.push_back(outcome.tests_per_message);
          }
        }
      }
    }
    return absl::OkStatus();
  }

  const Options& options_;
  Pair* const pair_;
  const int64_t deadline_ns_;
  uint64_t next_flag_ = 1;
};

}  // namespace

std::vector<FlagCell> FlagCellsFor(const Options& options) {
  std::vector<uint64_t> ll = {8, 1024, 8192, 65536};  // a step of LL has 64 KiB at most (NCCL 2.12 to 2.30)
  std::vector<uint64_t> ll128 = {128, 8192, 614400};  // one of LL128 600 KiB
  if (!options.sizes.empty()) ll = ll128 = options.sizes;
  std::vector<FlagCell> cells;
  for (const auto& [kind, sizes] : {std::make_pair(LineKind::kLl, ll), std::make_pair(LineKind::kLl128, ll128)}) {
    const uint64_t line = LineBytes(kind);
    for (uint64_t bytes : sizes) cells.push_back({kind, std::max(bytes / line * line, line)});
  }
  return cells;
}

absl::StatusOr<std::vector<FlagRow>> RunFlagSweep(const Options& options, Pair* pair) {
  if (pair->plugin()->client()->version() < 9) {
    return absl::InvalidArgumentError("--optional-recv needs v9 or later: earlier ones have no such hint");
  }
  return Sweep(options, pair).Run();
}

}  // namespace bench
}  // namespace tcpx
