// sampler.h: takes the samples of one mode, phase by phase, until there are enough or the time is up. Rank 0 only.
//
// Purpose: random order of cells, short samples, a phase reading before and after each; a sample under which the phase
//          changed is dropped. Ends for certain: each mode has a budget of time, each cell a number of tries.
// Threads: the driver.
// Errors:  the first failure of either side ends the run.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/pair.h"
#include "bench/net_bench/plan.h"

namespace tcpx {
namespace bench {

class Sampler {
 public:
  Sampler(const Options& options, Pair* pair, bool yield)
      : options_(options), pair_(pair), yield_(yield), random_(options.seed) {}

  absl::StatusOr<ModeReport> Run(Mode mode);

 private:
  absl::Status RunGroup(Mode mode, int connections, int64_t budget_ns, ModeReport* report);
  absl::Status SampleCells(ModeReport* report, std::vector<Cell>* cells, int64_t deadline_ns);
  // One round: a sample of each cell that wants one, in random order.
  absl::Status Round(ModeReport* report, std::vector<Cell>* cells, int64_t deadline_ns);
  absl::Status TakeSample(ModeReport* report, Cell* cell);
  // The cell's first look: how fast it is. Not kept.
  absl::Status FirstLook(ModeReport* report, Cell* cell);
  bool Disturbed(ModeReport* report, Cell* cell, double lost_fraction) const;
  absl::StatusOr<Phase> CurrentPhase();
  Command SampleCommand(const ModeReport& report, const Cell& cell);

  bool ChecksPhase() const { return options_.phase != PhaseChoice::kAny && pair_->CanProbe(); }
  Phase WantedPhase() const;
  bool Satisfied(const Cell& cell) const;
  bool Wants(const Cell& cell, Phase phase) const;
  // True when the wanted phase has not shown itself for so long that waiting on makes no sense.
  bool GivenUp(int64_t now) const;
  void ShowProgress(const ModeReport& report, const std::vector<Cell>& cells, bool last);

  const Options& options_;
  Pair* const pair_;
  const bool yield_;  // more drivers than CPUs
  std::mt19937_64 random_;
  int64_t started_ns_ = 0;
  int64_t shown_ns_ = 0;
  uint64_t samples_taken_ = 0;
  Phase latest_phase_ = Phase::kUnchecked;
  int64_t seen_[kKeptPhaseCount + 1] = {};  // readings per phase, over all modes
  int64_t wanted_seen_ns_ = 0;              // when the wanted phase was last read
};

}  // namespace bench
}  // namespace tcpx
