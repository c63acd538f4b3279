#include "bench/net_bench/sampler.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/command_line/sizes.h"
#include "bench/net_bench/phase.h"
#include "common/clock.h"

namespace tcpx {
namespace bench {
namespace {

// Samples that may be spoiled before a cell is left as it is, for each one wanted.
constexpr int kTriesPerSample = 15;
// Phases last up to 20 s.
constexpr int64_t kPatience = 25 * kSecond;
// A sample is dropped when other processes had more than this of a driver's time; on a machine that is never quiet
// that ends after so many for each one wanted.
constexpr double kLatencyLossMax = 0.25;
constexpr double kRateLossMax = 0.05;
constexpr int kDisturbedPerSample = 4;
constexpr int64_t kBetweenProbes = 5 * kMillisecond;

double ValueOf(Mode mode, const Outcome& outcome) {
  if (mode == Mode::kLatency) return outcome.half_round_trip_p50_us;
  return mode == Mode::kRate ? 1000 / outcome.nanoseconds_per_message : outcome.gigabytes_per_second;
}

void Pause(int64_t nanoseconds) {
  const timespec pause = {0, static_cast<long>(nanoseconds)};
  nanosleep(&pause, nullptr);
}

}  // namespace

absl::StatusOr<ModeReport> Sampler::Run(Mode mode) {
  ModeReport report;
  report.mode = mode;
  report.window = WindowFor(options_, mode);
  started_ns_ = shown_ns_ = MonotonicNanos();
  const std::vector<int> groups = ConnectionsFor(options_, mode);
  const int64_t budget = options_.budget_s * kSecond / static_cast<int64_t>(groups.size());
  for (int connections : groups) {
    if (absl::Status status = RunGroup(mode, connections, budget, &report); !status.ok()) return status;
  }
  report.seconds = static_cast<double>(MonotonicNanos() - started_ns_) / 1e9;
  return report;
}

absl::Status Sampler::RunGroup(Mode mode, int connections, int64_t budget_ns, ModeReport* report) {
  std::vector<Cell> cells = CellsFor(options_, mode, connections);
  Command open;
  open.kind = CommandKind::kOpenLinks;
  open.mode = mode;
  open.connections = connections;
  open.window = report->window;
  options_.raw_congestion.copy(open.raw_congestion, sizeof(open.raw_congestion) - 1);
  for (const Cell& cell : cells) {
    open.bytes = std::max(open.bytes, cell.bytes);
    open.implementations |= 1u << static_cast<uint32_t>(cell.implementation);
  }
  Outcome outcome;
  if (absl::Status status = pair_->Do(open, &outcome); !status.ok()) return status;
  absl::Status status = SampleCells(report, &cells, MonotonicNanos() + budget_ns);
  if (!status.ok()) return status;
  report->cells.insert(report->cells.end(), cells.begin(), cells.end());
  Command close;
  close.kind = CommandKind::kCloseLinks;
  return pair_->Do(close, &outcome);
}

absl::Status Sampler::SampleCells(ModeReport* report, std::vector<Cell>* cells, int64_t deadline_ns) {
  for (Cell& cell : *cells) {
    if (absl::Status status = FirstLook(report, &cell); !status.ok()) return status;
  }
  wanted_seen_ns_ = MonotonicNanos();
  for (;;) {
    const int64_t now = MonotonicNanos();
    const bool done = std::all_of(cells->begin(), cells->end(), [this](const Cell& c) { return Satisfied(c); });
    if (done || now > deadline_ns || GivenUp(now)) break;
    if (absl::Status status = Round(report, cells, deadline_ns); !status.ok()) return status;
  }
  ShowProgress(*report, *cells, /*last=*/true);
  return absl::OkStatus();
}

absl::Status Sampler::Round(ModeReport* report, std::vector<Cell>* cells, int64_t deadline_ns) {
  std::vector<Cell*> order;
  for (Cell& cell : *cells) order.push_back(&cell);
  std::shuffle(order.begin(), order.end(), random_);
  bool useful = false;
  for (Cell* cell : order) {
    if (MonotonicNanos() > deadline_ns) return absl::OkStatus();
    absl::StatusOr<Phase> phase = CurrentPhase();
    if (!phase.ok()) return phase.status();
    if (!Wants(*cell, *phase)) continue;
    useful = true;
    if (absl::Status status = TakeSample(report, cell); !status.ok()) return status;
    ShowProgress(*report, *cells, /*last=*/false);
  }
  if (!useful) Pause(kBetweenProbes);
  return absl::OkStatus();
}

absl::Status Sampler::FirstLook(ModeReport* report, Cell* cell) {
  if (options_.iterations > 0) return absl::OkStatus();
  Command command = SampleCommand(*report, *cell);
  command.probe_after = 0;
  Outcome outcome;
  absl::Status status = pair_->Do(command, &outcome);
  cell->nanoseconds_per_message = outcome.nanoseconds_per_message;
  return status;
}

absl::Status Sampler::TakeSample(ModeReport* report, Cell* cell) {
  Outcome outcome;
  const Phase before = latest_phase_;
  ++cell->tries;
  absl::Status status = pair_->Do(SampleCommand(*report, *cell), &outcome);
  if (!status.ok()) return status;
  cell->nanoseconds_per_message = outcome.nanoseconds_per_message;
  const Phase after = ChecksPhase() ? ClassifyBounce(outcome.bounce_after_ns) : Phase::kUnchecked;
  const Phase phase = Combine(before, after);
  const double value = ValueOf(report->mode, outcome);
  if (options_.verbose) {
    fprintf(stderr, "sample %s %s %s: %.3f %s, bounce %.0f ns, %s, %.1f %% lost to other processes\n",
            ModeName(report->mode), FormatSize(cell->bytes).c_str(), ImplementationName(cell->implementation), value,
            UnitOf(report->mode), outcome.bounce_after_ns, PhaseName(phase), 100 * outcome.lost_fraction);
  }
  if (phase == Phase::kMixed) {
    ++report->phase_changed;
    return absl::OkStatus();
  }
  if (Disturbed(report, cell, outcome.lost_fraction)) return absl::OkStatus();
  CellSamples& kept = cell->In(phase);
  kept.value.push_back(value);
  kept.p99.push_back(outcome.half_round_trip_p99_us);
  kept.nanoseconds_per_message.push_back(outcome.nanoseconds_per_message);
  return absl::OkStatus();
}

// A median latency bears some disturbance, a rate does not.
bool Sampler::Disturbed(ModeReport* report, Cell* cell, double lost_fraction) const {
  if (lost_fraction <= (report->mode == Mode::kLatency ? kLatencyLossMax : kRateLossMax)) return false;
  if (options_.keep_disturbed || cell->disturbed >= kDisturbedPerSample * options_.samples) {
    ++report->kept_disturbed;
    return false;
  }
  ++cell->disturbed;
  ++report->disturbed;
  return true;
}

absl::StatusOr<Phase> Sampler::CurrentPhase() {
  if (ChecksPhase()) {
    Command probe;
    probe.kind = CommandKind::kProbe;
    Outcome outcome;
    if (absl::Status status = pair_->Do(probe, &outcome); !status.ok()) return status;
    latest_phase_ = ClassifyBounce(outcome.bounce_after_ns);
    if (latest_phase_ == WantedPhase()) wanted_seen_ns_ = MonotonicNanos();
  }
  ++seen_[static_cast<size_t>(latest_phase_)];
  return latest_phase_;
}

Command Sampler::SampleCommand(const ModeReport& report, const Cell& cell) {
  Command command;
  command.kind = CommandKind::kSample;
  command.mode = report.mode;
  command.implementation = cell.implementation;
  command.connections = cell.connections;
  command.window = report.window;
  command.one_isend_per_pass = options_.one_isend_per_pass;
  command.check = options_.check;
  command.probe_after = ChecksPhase();
  command.yield = yield_;
  command.bytes = cell.bytes;
  command.messages = MessagesFor(options_, cell);
  command.warmup = WarmupFor(options_, cell);
  command.seed = options_.seed + 2 * ++samples_taken_;
  return command;
}

// Where no reading was ever near or far, the machine has one phase, and that one is wanted.
Phase Sampler::WantedPhase() const {
  if (!ChecksPhase()) return Phase::kUnchecked;
  const auto seen = [this](Phase phase) { return seen_[static_cast<size_t>(phase)]; };
  if (seen(Phase::kBetween) >= 20 && seen(Phase::kNear) == 0 && seen(Phase::kFar) == 0) return Phase::kBetween;
  return options_.phase == PhaseChoice::kFar ? Phase::kFar : Phase::kNear;
}

bool Sampler::Satisfied(const Cell& cell) const {
  const size_t wanted = static_cast<size_t>(options_.samples);
  return cell.In(WantedPhase()).value.size() >= wanted || cell.tries >= kTriesPerSample * options_.samples;
}

bool Sampler::Wants(const Cell& cell, Phase phase) const {
  return !Satisfied(cell) && cell.In(phase).value.size() < static_cast<size_t>(options_.samples);
}

bool Sampler::GivenUp(int64_t now) const { return ChecksPhase() && now - wanted_seen_ns_ > kPatience; }

void Sampler::ShowProgress(const ModeReport& report, const std::vector<Cell>& cells, bool last) {
  const int64_t now = MonotonicNanos();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const int64_t interval = terminal ? 200 * kMillisecond : 5 * kSecond;
  if (last ? !terminal : now - shown_ns_ < interval) return;
  shown_ns_ = now;
  const size_t wanted = static_cast<size_t>(options_.samples);
  size_t have = 0;
  for (const Cell& cell : cells) have += std::min(wanted, cell.In(WantedPhase()).value.size());
  const std::string text =
      last ? std::string()
           : absl::StrCat(ModeName(report.mode), ": ", have, " of ", wanted * cells.size(), " samples, CPUs now ",
                          PhaseName(latest_phase_), ", ", (now - started_ns_) / kSecond, " s");
  fprintf(stderr, terminal ? "\r\033[K%s" : "%s\n", text.c_str());
}

}  // namespace bench
}  // namespace tcpx
